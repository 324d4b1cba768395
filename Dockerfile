# A container of one file: `make image` builds the static executable first.
# The empty directory comes from the first stage, so that the volume belongs to the user that the server runs as.
FROM scratch AS empty
WORKDIR /data

FROM scratch
ARG BINARY=target/x86_64-unknown-linux-gnu/release/quarrydb
COPY ${BINARY} /quarrydb
COPY --from=empty --chown=65532:65532 /data /data
USER 65532:65532
VOLUME ["/data"]
EXPOSE 7117
ENV QUARRYDB_DATA=/data QUARRYDB_LISTEN=0.0.0.0:7117
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/quarrydb", "health"]
# Beyond loopback the server asks for keys: mount a file and name it, for example
#   docker run -p 7117:7117 -v quarry:/data -v ./keys:/keys:ro -e QUARRYDB_ACCESS_KEYS=/keys quarrydb
STOPSIGNAL SIGTERM
ENTRYPOINT ["/quarrydb"]
CMD ["serve"]

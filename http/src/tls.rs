//! TLS by rustls with the ring provider: certificate and key from PEM files.
//!
//! Takes two paths; gives an acceptor. Knows nothing of HTTP but the name it is spoken by.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// An acceptor for the chain in `cert` and its key.
///
/// # Errors
/// One line for a person: which file, what is wrong with it.
pub(crate) fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let told = |path: &Path, e: &dyn std::fmt::Display| format!("TLS: {}: {e}", path.display());
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| told(cert, &e))?;
    if chain.is_empty() {
        return Err(told(cert, &"holds no certificate in PEM"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| told(key, &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| told(cert, &e))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|e| told(cert, &e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

//! What was freed goes back to the system while nobody asks for memory.
//!
//! The allocator keeps what was freed for a moment, for whoever asks next, and looks at it again only when somebody does: after
//! a large import it would keep for hours what that took. Knows nothing of who freed what.
#![allow(
    unsafe_code,
    reason = "a call of the allocator, which is a C library; what makes it sound stands at the block"
)]

use std::time::Duration;

/// How often it is looked after.
const EVERY: Duration = Duration::from_secs(1);

/// Gives back what was freed long enough ago, again and again. Never ends.
pub(crate) async fn run() {
    loop {
        tokio::time::sleep(EVERY).await;
        // Unmapping many pages takes a while: not on a thread of the network.
        let _ = tokio::task::spawn_blocking(|| {
            // SAFETY: it takes no pointer and frees nothing that is in use; any thread may call it at any time.
            unsafe { libmimalloc_sys::mi_collect(false) }
        })
        .await;
    }
}

//! The allocator of a process that answers for weeks: memory that is free goes back to the system soon.
//!
//! mimalloc keeps what is freed for a second, which suits training, where the next tensor takes it. A service reads its weights
//! and compiles its patterns once; what that leaves behind would stand in its resident memory ever after, and in a steady state
//! the engine allocates nothing that would be worth keeping. But all maps of a mail are twenty megabytes, and fresh pages for each
//! such answer cost as much as what is written into them: half a second is long enough for the next ones to take them.
//!
//! Huge pages are refused, too: a page of 2 MiB stays resident whole for one block that is still in use.
#![expect(unsafe_code, reason = "the allocator's settings are C calls")]

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};

/// `mi_option_purge_delay`, in milliseconds; the crate does not name it.
const PURGE_DELAY: mi_option_t = 15;

/// How long a service keeps what is freed, in milliseconds.
const KEPT_MS: std::ffi::c_long = 500;

/// Frees soon from here on, in small pages. To be called before threads are started that allocate much.
pub(super) fn keep_little() {
    refuse_huge_pages();
    // SAFETY: writes one number that the allocator reads at its next purge; another thread may see the old or the new one.
    unsafe { mi_option_set(PURGE_DELAY, KEPT_MS) }
}

/// Memory that is touched from here on comes in small pages, even where the allocator asked for huge ones.
#[cfg(target_os = "linux")]
fn refuse_huge_pages() {
    // SAFETY: takes numbers only. Where it is refused (an old kernel, a sandbox) the process is larger, no more.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

#[cfg(not(target_os = "linux"))]
fn refuse_huge_pages() {}

/// Gives back what this thread and the shared pool hold unused.
pub(super) fn give_back() {
    // SAFETY: takes no pointers; the allocator collects the heap of the calling thread only.
    unsafe { mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_delays_purges() {
        // SAFETY: reads a number.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // What mimalloc 3 starts with. Another version of it may have moved its options.
        assert_eq!(delay(), 1000);
        keep_little();
        give_back();
        assert_eq!(delay(), KEPT_MS);
    }
}

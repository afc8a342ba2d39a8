//! The options of the allocator, which are set before the first allocation: the process keeps no memory that it does
//! not use.
//!
//! The reasons, with the figures: docs/decisions/0054-options-of-the-allocator.md

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// Memory of an arena is committed when it is first used, not in huge pages at the start.
const ARENA_EAGER_COMMIT: mi_option_t = 4;

/// Milliseconds for which freed memory stays with the process.
const PURGE_DELAY: mi_option_t = 15;

/// The loader calls it before every constructor, so that also the first arena has these options.
#[used]
#[expect(unsafe_code, reason = "the section decides about the moment of the call")]
// SAFETY: `.preinit_array` of a program holds pointers to functions with C calling convention, which the loader calls
// with arguments that this one ignores.
#[unsafe(link_section = ".preinit_array")]
static SET_OPTIONS: extern "C" fn() = set_options;

#[expect(unsafe_code, reason = "the options have no safe interface")]
extern "C" fn set_options() {
    // SAFETY: the function writes one entry of a static table of the allocator, and needs nothing to be initialised. No
    // other thread exists yet.
    unsafe {
        mi_option_set(ARENA_EAGER_COMMIT, 0);
        mi_option_set(PURGE_DELAY, 0);
    }
}

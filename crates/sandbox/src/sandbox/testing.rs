//! Lets a test binary act as a sandbox process, which must happen before the test harness starts
//! threads.

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
static TAKE_PART: extern "C" fn() = {
    extern "C" fn part() {
        super::take_part();
    }
    part
};

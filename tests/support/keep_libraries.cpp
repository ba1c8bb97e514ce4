// For builds with a sanitizer, in place of the C library's: what is opened stays. On AMD processors each of
// Mesa's drivers keeps a list of caches until the process ends; once the driver is closed nothing refers to
// it any more, and the leak check would call it leaked.
extern "C" int dlclose(void*) {
    return 0;
}

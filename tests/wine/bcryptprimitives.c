// Random bytes for programs of Rust: Windows has this library, Wine has it only since version 9.
typedef unsigned long long size;
__declspec(dllimport) unsigned char SystemFunction036(void *bytes, unsigned long count);

__declspec(dllexport) int ProcessPrng(unsigned char *bytes, size count) {
    while (count > 0) {
        unsigned long part = count < 0x10000000 ? (unsigned long)count : 0x10000000;
        if (!SystemFunction036(bytes, part))
            return 0;
        bytes += part;
        count -= part;
    }
    return 1;
}

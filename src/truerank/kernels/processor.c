/* Which variant of the library a processor can run. */

#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum {
    /* leaf 1, ECX: FMA, MOVBE, OSXSAVE, AVX, F16C */
    LEVEL_3_BASIC = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29,
    /* leaf 7, EBX: BMI1, AVX2, BMI2 */
    LEVEL_3_EXTENDED = 1 << 3 | 1 << 5 | 1 << 8,
    /* leaf 0x80000001, ECX: LZCNT */
    LEVEL_3_LATER = 1 << 5,
    /* leaf 7, EBX: AVX-512 F, DQ, CD, BW, VL */
    LEVEL_4_EXTENDED = 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | (int)(1u << 31),
    /* leaf 7, ECX: AVX-512 VNNI */
    LEVEL_4_MORE = 1 << 11,
    /* registers that the operating system saves: SSE and AVX; masks and wide registers of AVX-512 */
    SAVES_AVX = 0x06,
    SAVES_AVX512 = 0xe6,
};

static int has_all(unsigned int bits, int wanted) {
    return (bits & (unsigned int)wanted) == (unsigned int)wanted;
}

static unsigned int saved_registers(void) {
    unsigned int low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

int64_t processor_level(void) {
    unsigned int a, b, basic, extended, more, later, d;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !has_all(basic, LEVEL_3_BASIC))
        return 1;
    if (!__get_cpuid_count(7, 0, &a, &extended, &more, &d) || !__get_cpuid(0x80000001, &a, &b, &later, &d))
        return 1;
    unsigned int saved = saved_registers();
    if (!has_all(extended, LEVEL_3_EXTENDED) || !has_all(later, LEVEL_3_LATER) || !has_all(saved, SAVES_AVX))
        return 1;
    return has_all(extended, LEVEL_4_EXTENDED) && has_all(more, LEVEL_4_MORE) && has_all(saved, SAVES_AVX512) ? 4 : 3;
}

#else

int64_t processor_level(void) {
    return 0;
}

#endif

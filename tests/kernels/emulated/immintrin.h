/* The instructions of AVX-512 that the loops use, for processors without them: by SIMDe, and here what it lacks.

   `make test-emulated` compiles the loops for AVX-512 with this header in place of the compiler's. */

#pragma once

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <limits.h>
#include <math.h>
#include <simde/x86/avx512.h>
#include <string.h>

typedef simde__mmask32 __mmask32;

static inline int32_t emulated_round(double number) {
    double rounded = nearbyint(number);
    return rounded >= INT_MIN && rounded <= INT_MAX ? (int32_t)rounded : INT_MIN; /* also what is not a number */
}

static inline __m512i _mm512_cvtps_epi32(__m512 numbers) {
    float from[16];
    int32_t to[16];
    __m512i all;
    memcpy(from, &numbers, sizeof from);
    for (int i = 0; i < 16; i++)
        to[i] = emulated_round(from[i]);
    memcpy(&all, to, sizeof all);
    return all;
}

static inline __m256i _mm512_cvtpd_epi32(__m512d numbers) {
    double from[8];
    int32_t to[8];
    __m256i all;
    memcpy(from, &numbers, sizeof from);
    for (int i = 0; i < 8; i++)
        to[i] = emulated_round(from[i]);
    memcpy(&all, to, sizeof all);
    return all;
}

/* Return, bit by bit, whether numbers are equal to others, or else whether they are above. */
static inline __mmask32 emulated_compare(__m512i a, __m512i b, int is_equality) {
    int16_t left[32], right[32];
    __mmask32 bits = 0;
    memcpy(left, &a, sizeof left);
    memcpy(right, &b, sizeof right);
    for (int i = 0; i < 32; i++)
        bits |= (__mmask32)(is_equality ? left[i] == right[i] : left[i] > right[i]) << i;
    return bits;
}

#undef _mm512_cmpgt_epi16_mask
static inline __mmask32 _mm512_cmpgt_epi16_mask(__m512i a, __m512i b) {
    return emulated_compare(a, b, 0);
}

#undef _mm512_cmpeq_epi16_mask
static inline __mmask32 _mm512_cmpeq_epi16_mask(__m512i a, __m512i b) {
    return emulated_compare(a, b, 1);
}

#undef _mm512_movepi16_mask
static inline __mmask32 _mm512_movepi16_mask(__m512i numbers) {
    return emulated_compare(simde_mm512_setzero_si512(), numbers, 0);
}

#undef _mm512_madd_epi16 /* a macro with arguments, which INTRINSIC can't name */
static inline __m512i _mm512_madd_epi16(__m512i a, __m512i b) {
    return simde_mm512_madd_epi16(a, b);
}

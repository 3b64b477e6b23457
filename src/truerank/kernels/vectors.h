/* The type of numbers that a file is compiled for, and vectors of them as wide as the registers.

   Include with NUMBER_BITS defined as 32 or 64. `number` is then the type of scores. FACTOR_BITS, the same
   unless defined, gives `factor`, the type of factors and of targets. `ENTRY(name)` is the name of an
   exported function, including the type. */

#ifndef VECTORS_H
#define VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, USERS = 12 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32, USERS = 6 };
#elif defined(__aarch64__)
enum { VECTOR_BYTES = 16, USERS = 12 };
#else
enum { VECTOR_BYTES = 16, USERS = 6 };
#endif
/* USERS is the number of rows of a tile of scores: with two vectors of items each, these fill 12 of 16, or 24 of 32
   registers. */

#if NUMBER_BITS == 32
typedef float number;
typedef int32_t whole; /* as wide as a number: the result of a comparison in each lane */
#define ENTRY(name) name##_float32
#define FUSED_NUMBERS __builtin_fmaf
#else
typedef double number;
typedef int64_t whole;
#define ENTRY(name) name##_float64
#define FUSED_NUMBERS __builtin_fma
#endif

#ifndef FACTOR_BITS
#define FACTOR_BITS NUMBER_BITS
#endif
#if FACTOR_BITS == NUMBER_BITS
typedef number factor;
#define FUSED_FACTORS FUSED_NUMBERS
#elif FACTOR_BITS == 64
typedef double factor;
#define FUSED_FACTORS __builtin_fma
#endif

typedef number vector __attribute__((vector_size(VECTOR_BYTES)));
typedef whole wholes __attribute__((vector_size(VECTOR_BYTES)));
enum { LANES = VECTOR_BYTES / sizeof(number), PANEL = 2 * LANES };
/* PANEL is the number of items of a tile; the length of a row of scores is a multiple of it. */

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16") /* so that the results of a short loop stay in registers */
#if defined(__AVX2__) && !defined(__AVX512F__) && FACTOR_BITS == 32
#define TWICE _Pragma("GCC unroll 2") /* where the end of a turn takes a third of it, and is reached most often */
#else
#define TWICE
#endif

INLINE vector load(const number *from) {
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE void store(number *to, vector value) {
    memcpy(to, &value, sizeof value);
}

INLINE vector splat(number value) {
    return value - (vector){0};
}

/* Return a * b + c, rounded once. */
INLINE vector fused(vector a, vector b, vector c) {
#if defined(__has_builtin) && __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
    for (int lane = 0; lane < LANES; lane++) /* compiled to one instruction if the processor has it */
        c[lane] = FUSED_NUMBERS(a[lane], b[lane], c[lane]);
    return c;
#endif
}

/* Return the sum of the lanes, which must not overflow; unrolled, it takes a few instructions. */
INLINE int64_t sum(wholes counts) {
    whole total = 0;
    UNROLLED for (int lane = 0; lane < LANES; lane++)
        total += counts[lane];
    return total;
}

INLINE int is_any(wholes hits) {
    whole any = 0;
    UNROLLED for (int lane = 0; lane < LANES; lane++)
        any |= hits[lane];
    return any != 0;
}

INLINE int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

INLINE int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif

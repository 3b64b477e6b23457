/* Multiply-adds on registers alone: the highest rate that one core can reach. */

#define NUMBER_BITS 32
#include "../src/truerank/kernels/vectors.h"

enum { CHAINS = 12 }; /* independent sums, more than the units and the latency of an instruction need */

/* Do `rounds` times CHAINS vector operations; return how many multiply-adds these are. */
int64_t multiply_add(int64_t rounds, float *result) {
    vector sums[CHAINS], factor = splat(0.999f), term = splat(0.001f);
    for (int chain = 0; chain < CHAINS; chain++)
        sums[chain] = splat((float)chain);
    for (int64_t round = 0; round < rounds; round++)
        UNROLLED for (int chain = 0; chain < CHAINS; chain++)
            sums[chain] = fused(factor, sums[chain], term);
    for (int chain = 0; chain < CHAINS; chain++)
        *result += sums[chain][0]; /* so that nothing is left out */
    return rounds * CHAINS * LANES;
}

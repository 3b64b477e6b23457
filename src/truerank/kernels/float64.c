/* The loops for scores in float64. */

#define NUMBER_BITS 64
#include "factors.inc"
#include "top.inc"
#include "histories.inc"
#include "best.inc"
#include "pairs.inc"

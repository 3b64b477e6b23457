/* The loops for scores in float32. */

#define NUMBER_BITS 32
#include "factors.inc"
#include "top.inc"
#include "histories.inc"
#include "best.inc"
#include "pairs.inc"

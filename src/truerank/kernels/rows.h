/* Checks of the positions in a sparse matrix. */

#ifndef ROWS_H
#define ROWS_H

#include "kernels.h"

/* Return whether the rows start..stop - 1 lie within the stored columns, and all of those are in 0..width - 1. */
int lies_within(const Rows *rows, int64_t start, int64_t stop, int64_t width);

#endif

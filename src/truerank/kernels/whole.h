/* Scores in whole numbers, for which factors in float32 and float64 are rounded alike. */

#ifndef WHOLE_H
#define WHOLE_H

#include "kernels.h"

enum {
    SIDE_BY_SIDE = 8, /* items that are scored together */
    MOST_SCORED = 1024, /* items */
    MOST_BOUNDS = 32,
};

/* Return the number of columns of rows of whole numbers. */
int64_t padded_columns(int64_t columns);

double length_of(const double *row, int64_t columns);

/* Return the unit in which rows that are no longer than this are rounded; 0 if scores of such rows may underflow. */
double unit_of(double longest, int64_t columns);

/* Write a row in whole numbers; all are 0 if the unit is. */
void round_row(const double *row, int64_t columns, double unit, int64_t padded, int16_t *whole);

/* One user and all items. Score t is decided if it is above highs[t] or below lows[t]. */
typedef struct {
    const int16_t *items;
    int64_t rows, columns;
    int64_t n_bounds;
    int32_t lows[MOST_BOUNDS], highs[MOST_BOUNDS];
    int16_t own[MOST_WHOLE_COLUMNS];
} Whole;

/* Round the factors of the user, and find the bounds beyond which whole numbers decide about targets; return whether there
   are any. */
int set_bounds(
    Whole *whole, const double *row, int64_t columns, double unit_of_items, const double *targets, int64_t size);

/* Write the scores of the chosen items, which must have room for SIDE_BY_SIDE more, to where there is room for MOST_SCORED,
   and to above[t] and close[t] how many are above highs[t], and how many are not decided. */
void count_whole(
    const Whole *whole, int32_t *chosen, int64_t size, int32_t *scores, int64_t *above, int64_t *close);

/* List the places of the scores that are not decided for bounds t, with room for one more; return how many they are. */
int64_t list_close(const Whole *whole, int64_t t, const int32_t *scores, int64_t size, int32_t *places);

#endif

/* Places of items that are not counted, in another order of the catalogue, in the order in which they are needed. */

#ifndef PLACES_H
#define PLACES_H

#include <stdint.h>

enum { BUCKET = 256 }; /* places; chunks are multiples of this, so that places within one need no order */

/* Order places by their bucket. `starts` has room for one number more than there are buckets, `spare` for all places. */
void sort_places(int32_t *places, int64_t size, int64_t buckets, int64_t *starts, int32_t *spare);

#endif

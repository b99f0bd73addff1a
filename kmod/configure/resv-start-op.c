// SPDX-License-Identifier: GPL-2.0-only
/* A family says from which command on it validates strictly (6.1). */
#include <net/genetlink.h>

struct genl_family use = { .resv_start_op = 1 };

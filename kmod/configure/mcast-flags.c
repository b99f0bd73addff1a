// SPDX-License-Identifier: GPL-2.0-only
/* A multicast group may ask for CAP_NET_ADMIN (6.7). */
#include <net/genetlink.h>

int use = GENL_MCAST_CAP_NET_ADMIN;

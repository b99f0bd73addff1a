/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device of a plugin is which card, and which ones a container should get: pure functions. A
 * card that several may share is several devices, "<card>::0", "<card>::1", ...; a device without
 * "::" is a whole card. Nobody gets two of one card: that would be half of what was asked for.
 */
#ifndef GPUSHARE_AGENT_DEVICES_H
#define GPUSHARE_AGENT_DEVICES_H

#include <stddef.h>

#include "agent/plugin.h"
#include "common/buf.h"
#include "common/err.h"

/* The @k-th device of @card; the caller frees. -ENAMETOOLONG: more than the kubelet takes. */
int devices_name(const char *card, unsigned int k, char **ret, struct gs_err *err);

/* Which of the devices of its card is it, as devices_name() named it? -1: none such. */
int devices_number(const char *device);

/* How many characters of @device are its card's name. */
size_t devices_card(const char *device);

/*
 * Fills @wish, each device from another card, with those that must be among them; into @ret, which
 * is empty. Cards with the fewest free devices come first, so that others stay free altogether;
 * then by name. -ENOSPC: too few cards have one; -EINVAL: two that must be are of one card.
 */
int devices_prefer(const struct plugin_wish *wish, struct gs_strv *ret, struct gs_err *err);

/* Are all of @ids of different cards? -ENOSPC: no, and which. */
int devices_apart(const struct gs_strv *ids, struct gs_err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what the kernel module's numbers mean, for people, for JSON and for test scripts. */
#ifndef GPUSHARE_COMMON_KNAME_H
#define GPUSHARE_COMMON_KNAME_H

#include "common/kmsg.h"
#include "common/registry.h"

/*
 * The name of a number of include/uapi/gpushare.h, lower case with dashes; "?" for one that a newer
 * module may know.
 */
const char *gs_kname_state(unsigned int state);
const char *gs_kname_cause(unsigned int cause);
const char *gs_kname_role(unsigned int role);
const char *gs_kname_kind(unsigned int kind);
const char *gs_kname_event(unsigned int event);
const char *gs_kname_attr(unsigned int attr);

/* The name of the feature GS_F_* with the value 1 << @bit, and what is lost without it, or NULL. */
const char *gs_kname_feature(unsigned int bit);
const char *gs_kname_feature_lack(unsigned int bit);

/* How many features have names: the bits 0 to one less. */
unsigned int gs_kname_features(void);

/*
 * How the agent names things for the module. A container's watch has its id; a holding has its
 * holder's pod and container, which live longer than a container that is restarted, or its id. What
 * is too long for a name is cut, with a hash of all of it.
 */
void gs_kname_watch(const struct gs_record *rec, gs_kname ret);
void gs_kname_holding(const struct gs_record *rec, gs_kname ret);

/* The same for a card that nobody holds: "free/" and its name. */
void gs_kname_free(const char *card, gs_kname ret);

/* The state of that name; -1 where none has it. */
int gs_kname_find_state(const char *name);

#endif

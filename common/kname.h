/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what the kernel module's numbers mean, for people, for JSON and for test scripts. */
#ifndef GPUSHARE_COMMON_KNAME_H
#define GPUSHARE_COMMON_KNAME_H

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

/* The state of that name; -1 where none has it. */
int gs_kname_find_state(const char *name);

#endif

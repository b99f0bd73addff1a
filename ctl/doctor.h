/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl doctor: what its checks share. */
#ifndef GPUSHARE_CTL_DOCTOR_H
#define GPUSHARE_CTL_DOCTOR_H

#include <stdbool.h>

#include "common/config.h"
#include "ctl/setup.h"

/* A note is worth knowing, and no fault: it leaves the exit status as it is. */
enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WRONG };

struct doctor_finding {
	const char *check;
	enum doctor_state state;
	char *text;
	char *mend; /* a command or a sentence; NULL where there is none */
};

struct doctor {
	const char *root; /* "/": the node that we run on, whose kernel can be asked */
	struct gs_config config; /* paths in it are below @root */
	bool config_ok; /* else @config holds the defaults */
	struct setup_node node;
	char *release; /* the kernel's; NULL: not known */
	const char *check; /* the one at work */
	struct doctor_finding *findings;
	size_t n;
};

/* Adds a finding to the check at work. @mend may be NULL; the finding takes it. */
__attribute__((format(printf, 2, 3))) void doctor_ok(struct doctor *d, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void doctor_note(struct doctor *d, char *mend,
						       const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void doctor_wrong(struct doctor *d, char *mend,
							const char *fmt, ...);

/* Asks the loaded module itself: its ABI, and what this kernel lacks. Adds what is not right. */
void doctor_ask_module(struct doctor *d);

/* Each looks at one thing and adds at least one finding. */
void doctor_kernel(struct doctor *d);
void doctor_tracing(struct doctor *d);
void doctor_module(struct doctor *d);
void doctor_secure_boot(struct doctor *d);
void doctor_cgroup(struct doctor *d);
void doctor_catalogue(struct doctor *d);
void doctor_cards(struct doctor *d);
void doctor_links(struct doctor *d);
void doctor_program(struct doctor *d);
void doctor_handler(struct doctor *d);
void doctor_cri(struct doctor *d);
void doctor_next(struct doctor *d);
void doctor_hook(struct doctor *d);
void doctor_kubelet(struct doctor *d);
void doctor_permissions(struct doctor *d);
void doctor_agent(struct doctor *d);

#endif

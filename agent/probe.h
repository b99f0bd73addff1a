/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpushare-probe: one process for one vendor, which reads the cards and their load for the agent.
 * Vendors' libraries, files and commands hang and die; the agent kills the probe then, and nothing
 * else is lost. It never calls back, and it ends when its standard input does.
 *
 * One JSON object a line; requests on stdin, answers on stdout, one for each, in order:
 *
 *   {"seq":N,"op":"vendor","file":NAME,"text":ENTRY}     -> {"seq":N}
 *   {"seq":N,"op":"cards"}                               -> {"seq":N,"cards":[CARD,...],
 *                                                           "left_out":"sentence"}
 *   {"seq":N,"op":"load","card":ID,"processes":WHEN}     -> {"seq":N,"loads":[LOAD,...]}
 *
 * or {"seq":N,"error":"sentence"}. An empty line has no answer: it is sent while the answer to a
 * "load" is due, and asks to come to an end without a list of processes that is only "due".
 * ENTRY: the text of the catalogue's file. Without "card": all cards. WHEN: "now", "due" (when the
 * last list is old enough for what it costs) or "free" (only where reading the load tells them).
 *
 *   CARD  {"id","uuid","pci","index":N,"select":[VALUE,...],
 *          "nodes":[{"path","major":N,"minor":N,"own":B,"revocable":B,"hook":B},...]}
 *   LOAD  {"card":ID,"at_ms":N,"busy":0..1,"memory_used":N,"memory_total":N,
 *          "processes":[{"pid":N,"memory":N,"busy":0..1},...],"busy_since_ms":N,
 *          "unseen":[CGROUP,...]}
 *        or   {"card":ID,"error":"sentence"}
 *
 * Members that are not known are absent. A process's "busy" is what it did since "busy_since_ms"
 * (both times: CLOCK_BOOTTIME). "left_out" tells of a card that could not be listed, while
 * others could. "unseen": pods with so many open files that "processes" may lack some of theirs.
 */
#ifndef GPUSHARE_AGENT_PROBE_H
#define GPUSHARE_AGENT_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/vendor_side.h"
#include "common/buf.h"
#include "common/err.h"

#define PROBE_LINE_MAX (1024 * 1024) /* both ways */
#define PROBE_CARDS_MAX 1024
#define PROBE_PROCESSES_MAX 4096 /* of one card */
#define PROBE_UNSEEN_MAX 16 /* pods; where there are more, nothing is known */
/* Below this folder /sys, /proc and /dev are looked for; for tests, so not in any manual. */
#define PROBE_ROOT_ENV "GPUSHARE_PROBE_ROOT"
/*
 * Where the node's own files are, for an agent in a container: vendors' libraries and commands come
 * from there if it has them. packaging/k8s/base/agent.yaml sets it.
 */
#define PROBE_HOST_ENV "GPUSHARE_HOST_ROOT"

/* Values of a card that templates name. */
struct fields {
	struct gs_strv names, values;
};

struct probe_node {
	char *path;
	dev_t rdev;
	bool own; /* one card's alone */
	bool hook, revocable; /* as the driver section says */
};

struct probe_card {
	char *id, *uuid, *pci; /* uuid, pci NULL: not told */
	int index; /* -1: not told */
	struct gs_strv select;
	struct fields fields;
	char *folder; /* in sysfs; NULL: none */
	struct probe_node *nodes;
	size_t n_nodes;
	void *handle; /* NVML's */
	bool slice; /* of a card: its nodes are not all its own */
	uint64_t scan_due_ms; /* when to look for its processes again */
	uint64_t sampled_ms; /* NVML: when its processes' load was read last; 0: never */
	unsigned long long sample_us; /* the time, by the library's clock, of the last of those */
};

struct probe_process {
	pid_t pid;
	uint64_t memory;
	bool busy_known;
	double busy;
};

struct probe_load {
	double busy;
	bool busy_known, used_known, total_known, processes_known;
	uint64_t used, total;
	uint64_t busy_since_ms; /* since when the processes' busy is counted; 0: none is known */
	struct probe_process *processes;
	size_t n_processes;
	struct gs_strv unseen; /* cgroups of pods that may use it unseen */
};

enum probe_when { PROBE_NOW, PROBE_DUE, PROBE_FREE };

struct nvml;
struct fdinfo;

struct probe {
	struct vendor_side side;
	struct probe_card *v;
	size_t n;
	char *left_out; /* of the cards that were listed last; NULL: none */
	struct nvml *nvml;
	struct fdinfo *fdinfo;
	bool hurries; /* an empty line on stdin asks to come to an end */
	unsigned int command_ms; /* how long a command may take */
};

/* So many processes of all cards together an answer has, at most: a line is bounded. */
extern size_t probe_answer_processes;

/* Frees all that it holds; what its program has set stays. */
void probe_free(struct probe *probe);

/*
 * Answers one line (without its newline) in @out, which gets a newline too. The cards of the last
 * "cards" are those that "load" knows.
 */
void probe_answer(struct probe *probe, const char *line, size_t len, struct gs_buf *out);

/* Where the path really is: below $GPUSHARE_PROBE_ROOT if that is set. The caller frees. */
char *probe_path(const char *path);

/* $GPUSHARE_HOST_ROOT; NULL: it is not set, or is no absolute path. */
const char *probe_host(void);

/* The existing paths that match an absolute glob, sorted; without the root. At most 65536. */
int probe_glob(const char *glob, struct gs_strv *ret, struct gs_err *err);

/* The first line of a file (below the root) without white space around it; the caller frees. */
int probe_line(const char *path, char **ret, struct gs_err *err);
/* The number that is its first line; "%" may follow. */
int probe_number(const char *path, double *ret, struct gs_err *err);

/* The value of a field; NULL: it has none. */
const char *fields_get(const struct fields *fields, const char *name);
void fields_set(struct fields *fields, const char *name, const char *value);
/* Fills the {fields} of a template in; -ENODATA: one has no value. The caller frees. */
int fields_fill(const struct fields *fields, const char *template, char **ret, struct gs_err *err);

/* Frees what a card, a load holds. */
void probe_card_free(struct probe_card *card);
void probe_load_free(struct probe_load *load);

/* A process that uses the card: once, with the larger of the memories told. */
void probe_load_process(struct probe_load *load, pid_t pid, uint64_t memory);

/*
 * What part of the time one of the load's processes kept the card busy: the larger of those told.
 * One that is none of them is passed over.
 */
void probe_load_busy(struct probe_load *load, pid_t pid, double busy);

/*
 * Sets id, uuid, pci, index and select from the card's fields and the entry's templates, and the
 * hook and revocable of its nodes; adds the vendor's nodes that are no card's and are hooked.
 */
int probe_card_finish(const struct vendor_side *side, struct probe_card *card, struct gs_err *err);

/* Adds the node if it exists and is a character device; false: it is none. @own as in the node. */
bool probe_card_add_node(struct probe_card *card, const char *path, bool own);

/* The nodes of the sysfs folders in the card's folder that match the glob: drm/card0 and such. */
int probe_card_add_sysfs(struct probe_card *card, const char *glob, struct gs_err *err);

/* The nodes that an entry's "nodes" lists. */
int probe_card_add_listed(const struct vendor_side *side, struct probe_card *card,
			  struct gs_err *err);

/* The last part of the folder's real path that is a PCI address; NULL. The caller frees. */
char *probe_pci_of(const char *folder);

/* Is something of the vendor in /proc/devices? */
bool probe_driver_there(const struct vendor_side *side);

/* The cards, by source: 0, probe->v filled, perhaps left_out set; or an error and nothing. */
int probe_files_cards(struct probe *probe, struct gs_err *err);
int probe_command_cards(struct probe *probe, struct gs_err *err);
int probe_nvml_cards(struct probe *probe, struct gs_err *err);

/* One card's load, by source. */
int probe_files_load(struct probe *probe, const struct probe_card *card, struct probe_load *ret,
		     struct gs_err *err);
int probe_command_load(struct probe *probe, const struct probe_card *card, struct probe_load *ret,
		       struct gs_err *err);
int probe_nvml_load(struct probe *probe, struct probe_card *card, struct probe_load *ret,
		    struct gs_err *err);
int probe_nvml_processes(struct probe *probe, struct probe_card *card, struct probe_load *ret,
			 struct gs_err *err);
void probe_nvml_free(struct nvml *nvml);

/*
 * Loads of @n cards from DRM fdinfo: busy is what their engines did since the last reading (the
 * first one waits a tenth of a second for a second), memory and processes are those of their users.
 * A process is as busy as the busiest engine of the busiest of its clients.
 */
int probe_fdinfo_loads(struct probe *probe, const struct probe_card *cards, size_t n,
		       struct probe_load *rets, struct gs_err *err);
void probe_fdinfo_free(struct fdinfo *fdinfo);

/*
 * Runs a command without a shell and gives its output, of at most 256 KiB. -ETIMEDOUT, -EFBIG,
 * -ENOENT: there is no such program; -EIO: it failed. It dies with us. One that the host has
 * (probe_host()) runs with the host's libraries, and finds nothing else than its files.
 */
int probe_run(const struct gs_strv *argv, unsigned int ms, struct gs_buf *out, struct gs_err *err);

/* The cards' folder in sysfs of a card that has a PCI address. The caller frees; NULL: none. */
char *probe_pci_folder(const char *pci);

/*
 * `gpushare-probe hook PATH DEV VENDOR [PASSIVE,... ["revocable"]]`: opens that node and has its
 * driver hooked by the kernel module; @argv begins with PATH. DEV is the number that it must have,
 * as the module writes numbers. Prints "0", or "-ERRNO SENTENCE". Gives the exit status: 0 where it
 * could tell.
 */
int probe_hook(int argc, char **argv);

#endif

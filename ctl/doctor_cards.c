// SPDX-License-Identifier: Apache-2.0
/* gpusharectl doctor: the catalogue, drivers, and their device nodes. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/catalogue.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/glob.h"
#include "common/xalloc.h"
#include "ctl/doctor.h"
#include "ctl/root.h"

/* How deep vendors put their nodes below /dev. */
#define DEPTH_MAX 3

/* ---- The catalogue. */

static void see_vendor(const char *file, const struct gs_vendor *vendor, const struct gs_err *wrong,
		       void *arg)
{
	struct doctor *d = arg;

	(void)file;
	if (!vendor)
		doctor_wrong(d, gs_strdup("gpusharectl config check   # after editing it"),
			     "%s; until then every container that asks for devices is refused",
			     wrong->msg);
}

void doctor_catalogue(struct doctor *d)
{
	struct gs_err err = { 0 };
	size_t before = d->n;

	if (gs_catalogue_check(&d->config.vendor_dirs, see_vendor, d, &err) < 0)
		doctor_wrong(d, gs_strdup("install gpushare's catalogue again"), "%s", err.msg);
	if (d->n == before)
		doctor_ok(d, "every vendor's file is valid");
}

/* ---- Nodes. */

struct node {
	char *path; /* as the node sees it */
	unsigned int major, minor;
	const struct gs_vendor *vendor;
	enum gs_node_kind kind;
};

struct nodes {
	const struct gs_catalogue *catalogue;
	struct node *v;
	size_t n;
};

static void add_node(struct nodes *nodes, const char *path, dev_t rdev)
{
	const struct gs_node *rule = NULL;
	const struct gs_vendor *vendor =
		gs_catalogue_node(nodes->catalogue, path, major(rdev), minor(rdev), &rule);

	if (!vendor)
		return;
	nodes->v = gs_grow(nodes->v, nodes->n, sizeof(*nodes->v));
	nodes->v[nodes->n++] =
		(struct node){ gs_strdup(path), major(rdev), minor(rdev), vendor, rule->kind };
}

static void walk(struct nodes *nodes, int dir, const char *path, unsigned int depth)
{
	cleanup_dir DIR *list = gs_opendirat(dir, ".");
	struct dirent *entry;

	while (list && (entry = readdir(list)) != NULL) {
		cleanup_free char *full = gs_asprintf("%s/%s", path, entry->d_name);
		cleanup_close int below = -1;
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISCHR(st.st_mode))
			add_node(nodes, full, st.st_rdev);
		if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
			continue;
		below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			walk(nodes, below, full, depth + 1);
	}
}

/* The vendors' nodes of this node; false: the catalogue is broken, which its own check tells. */
static bool find_nodes(const struct doctor *d, struct gs_catalogue *catalogue, struct nodes *ret)
{
	static char *sysfs;
	cleanup_close int dev = gs_file_open_in(d->root, "/dev", O_RDONLY | O_DIRECTORY);

	if (gs_catalogue_load(catalogue, &d->config.vendor_dirs, NULL) < 0)
		return false;
	free(sysfs);
	sysfs = root_path(d->root, "/sys");
	gs_catalogue_sysfs = sysfs;
	*ret = (struct nodes){ .catalogue = catalogue };
	if (dev >= 0)
		walk(ret, dev, "/dev", 1);
	return true;
}

static void free_nodes(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->n; i++)
		free(nodes->v[i].path);
	free(nodes->v);
}

/* ---- Drivers: the character devices of /proc/devices. */

/* Is there one with that number (@vendor NULL), or of that vendor? */
static bool has_driver(const char *devices, const struct gs_vendor *vendor, unsigned int number)
{
	for (const char *line = devices; line && *line;) {
		char *end;
		unsigned long major = strtoul(line, &end, 10);
		size_t len;

		if (strncmp(line, "Block", 5) == 0)
			return false;
		if (end > line && *end == ' ') {
			cleanup_free char *name = NULL;

			if (!vendor && major == number)
				return true;
			end += strspn(end, " ");
			len = strcspn(end, " \n");
			name = gs_strndup(end, len);
			if (vendor && gs_glob_any(&vendor->chrdevs, name))
				return true;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return false;
}

static char *make_nodes(const struct gs_vendor *vendor)
{
	if (strcmp(vendor->name, "nvidia") == 0)
		return gs_strdup("nvidia-modprobe -c 0 -u   # or nvidia-smi, once");
	return gs_strdup("udevadm trigger --subsystem-match=drm --subsystem-match=misc");
}

static size_t count_cards(const struct nodes *nodes, const struct gs_vendor *vendor)
{
	size_t n = 0;

	for (size_t i = 0; i < nodes->n; i++)
		n += nodes->v[i].vendor == vendor && nodes->v[i].kind == GS_NODE_CARD;
	return n;
}

/* Two makers have a driver of the same name: is it told of by another vendor? */
static bool is_anothers(const struct nodes *nodes, const struct gs_vendor *vendor)
{
	for (size_t i = 0; i < nodes->catalogue->n; i++) {
		const struct gs_vendor *other = &nodes->catalogue->v[i];

		if (other != vendor && gs_strv_intersect(&other->chrdevs, &vendor->chrdevs) &&
		    (other < vendor || count_cards(nodes, other)))
			return true;
	}
	return false;
}

/* A vendor whose driver is there should have a card. */
static void check_vendor(struct doctor *d, const struct nodes *nodes, const char *devices,
			 const struct gs_vendor *vendor, size_t *cards)
{
	size_t n = count_cards(nodes, vendor);

	for (size_t i = 0; i < nodes->n; i++) {
		const struct node *node = &nodes->v[i];

		if (node->vendor != vendor)
			continue;
		if (!has_driver(devices, NULL, node->major))
			doctor_wrong(d,
				     gs_strdup("dmesg | tail   # why its driver is not there; "
					       "then load it"),
				     "%s is there, but no driver has its number %u", node->path,
				     node->major);
	}
	if (!n && has_driver(devices, vendor, 0) && !is_anothers(nodes, vendor))
		doctor_wrong(d, make_nodes(vendor),
			     "%s's driver is loaded, but no card of it is in /dev", vendor->name);
	*cards += n;
}

void doctor_cards(struct doctor *d)
{
	cleanup_catalogue struct gs_catalogue catalogue = { 0 };
	cleanup_free char *devices = root_line(d->root, "/proc/devices");
	struct nodes nodes;
	size_t cards = 0, before = d->n;

	if (!find_nodes(d, &catalogue, &nodes)) {
		doctor_note(d, NULL, "not looked for, as the catalogue is broken");
		return;
	}
	for (size_t i = 0; devices && i < catalogue.n; i++)
		check_vendor(d, &nodes, devices, &catalogue.v[i], &cards);
	if (!devices)
		doctor_note(d, NULL, "/proc/devices can't be read");
	else if (d->n == before && !cards)
		doctor_note(d, gs_strdup("gpusharectl config check   # the vendors that are known"),
			    "no card of any vendor is here");
	else if (d->n == before)
		doctor_ok(d, "%zu card%s", cards, cards == 1 ? "" : "s");
	free_nodes(&nodes);
}

/* ---- Links. */

/*
 * runc with systemd's cgroup driver names devices to systemd as /dev/char/<major>:<minor>; where
 * that link is missing, the container loses the device when systemd is reloaded.
 */
static void check_link(struct doctor *d, const struct node *node)
{
	cleanup_free char *link = gs_asprintf("/dev/char/%u:%u", node->major, node->minor);
	struct stat st;
	bool there = root_stat(d->root, link, &st);
	char *mend = strcmp(node->vendor->name, "nvidia") == 0 ?
			     gs_strdup("nvidia-ctk system create-dev-char-symlinks --create-all") :
			     gs_asprintf("ln -sfn ..%s %s", node->path + 4, link);

	if (!there)
		doctor_wrong(
			d, mend,
			"%s has no link %s: with systemd's cgroup driver containers lose it at "
			"the next systemctl daemon-reload",
			node->path, link);
	else if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != node->major ||
		 minor(st.st_rdev) != node->minor)
		doctor_wrong(d, mend, "%s leads to another device than %s", link, node->path);
	else
		free(mend);
}

void doctor_links(struct doctor *d)
{
	cleanup_catalogue struct gs_catalogue catalogue = { 0 };
	struct nodes nodes;
	size_t before = d->n;

	if (!find_nodes(d, &catalogue, &nodes)) {
		doctor_note(d, NULL, "not looked for, as the catalogue is broken");
		return;
	}
	for (size_t i = 0; i < nodes.n; i++)
		check_link(d, &nodes.v[i]);
	if (d->n == before)
		doctor_ok(d, nodes.n ? "every card's node has its link" : "no node needs a link");
	free_nodes(&nodes);
}

// SPDX-License-Identifier: Apache-2.0
/* gpusharectl doctor: container runtimes, their handlers, and the runtime that comes next. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"
#include "ctl/doctor.h"
#include "ctl/root.h"

#define CONTAINERD_MAIN "/etc/containerd/config.toml"

static bool is_program(const char *root, const char *path)
{
	struct stat st;

	return root_stat(root, path, &st) && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

/* ---- gpushare-runtime and its hook. */

void doctor_program(struct doctor *d)
{
	if (is_program(d->root, d->node.binary))
		doctor_ok(d, "%s", d->node.binary);
	else
		doctor_wrong(d, gs_strdup("install the package gpushare-runtime, or: make install"),
			     "%s: not there, or not executable", d->node.binary);
}

void doctor_hook(struct doctor *d)
{
	if (is_program(d->root, d->config.hook))
		doctor_ok(d, "%s", d->config.hook);
	else
		doctor_wrong(d,
			     gs_strdup("install gpushare again, or mend \"hook\" in the "
				       "configuration"),
			     "%s, the program of \"hook\": not there, or not executable; every "
			     "container that receives devices fails",
			     d->config.hook);
}

/* ---- The next runtime. */

static bool same_bytes(int a, int b)
{
	char ba[4096], bb[4096];
	ssize_t na, nb;

	do {
		na = read(a, ba, sizeof(ba));
		nb = read(b, bb, sizeof(bb));
	} while (na > 0 && na == nb && memcmp(ba, bb, (size_t)na) == 0);
	return na == 0 && nb == 0;
}

/* Is it gpushare-runtime, by inode or by its bytes? */
static bool is_ourselves(const struct doctor *d, const char *path)
{
	cleanup_close int a = gs_file_open_in(d->root, path, O_RDONLY);
	cleanup_close int b = gs_file_open_in(d->root, d->node.binary, O_RDONLY);
	struct stat sa, sb;

	if (a < 0 || b < 0 || fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return false;
	return (sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino) ||
	       (sa.st_size == sb.st_size && same_bytes(a, b));
}

void doctor_next(struct doctor *d)
{
	const struct gs_strv *next = &d->config.next;
	cleanup_free char *names = gs_strv_join(next);

	for (size_t i = 0; i < next->n; i++) {
		cleanup_free char *path = strchr(next->v[i], '/') ?
						  gs_strdup(next->v[i]) :
						  root_program(d->root, next->v[i]);

		if (!path || !is_program(d->root, path))
			continue;
		if (!is_ourselves(d, path)) {
			doctor_ok(d, "%s", path);
			return;
		}
		doctor_wrong(
			d,
			gs_strdup("name the real one's path in \"next\", and see \"Which runtime "
				  "comes next\" in docs/operator.md"),
			"%s is gpushare-runtime itself: it is passed over, and what calls it "
			"by that name calls in a circle",
			path);
	}
	doctor_wrong(d, gs_strdup("apt install runc"),
		     "no next runtime: none of %s is installed, or only ourselves", names);
}

/* ---- The kubelet's cgroup driver. */

/* What the kubelet's configuration says: 1 systemd, 0 cgroupfs, -1: nothing that we can see. */
static int kubelet_driver(const struct doctor *d)
{
	cleanup_free char *text = root_line(d->root, "/var/lib/kubelet/config.yaml");
	const char *key = text ? strstr(text, "cgroupDriver:") : NULL;

	if (!key || (key > text && key[-1] != '\n'))
		return -1;
	key += strlen("cgroupDriver:");
	key += strspn(key, " \"'");
	return strncmp(key, "systemd", 7) == 0 ? 1 : strncmp(key, "cgroupfs", 8) == 0 ? 0 : -1;
}

/* ---- containerd. */

/* What all of its files say. */
struct containerd {
	struct doctor *d;
	unsigned int version;
	const char *cri;
	char *binary; /* of the handler; setup_handler's is the text's */
	char *where; /* the file that has the handler */
	char *replaced_by; /* below version 3: a file whose section replaces the main file's */
	struct setup_handler handler;
	int runc_systemd;
};

static void read_tables(struct containerd *c, const char *path, const struct toml *doc)
{
	cleanup_free char *ours = gs_asprintf("%s.containerd.runtimes." SETUP_HANDLER, c->cri);
	cleanup_free char *runc = gs_asprintf("%s.containerd.runtimes.runc", c->cri);
	struct setup_handler handler;

	setup_read_handler(doc, runc, &handler);
	if (handler.systemd_cgroup >= 0)
		c->runc_systemd = handler.systemd_cgroup;
	setup_read_handler(doc, ours, &handler);
	if (!handler.there)
		return;
	free(c->where);
	free(c->binary);
	c->where = gs_strdup(path);
	c->binary = handler.binary ? gs_strdup(handler.binary) : NULL;
	c->handler = handler;
	c->handler.binary = c->binary;
}

static void read_import(const char *path, void *arg)
{
	struct containerd *c = arg;
	cleanup_free char *text = NULL;
	cleanup_toml struct toml doc = { 0 };
	struct gs_err err = { 0 };
	unsigned int version;

	if (root_read(c->d->root, path, &text, &err) < 0) {
		doctor_wrong(c->d, NULL, "containerd: %s", err.msg);
		return;
	}
	if (toml_parse(text, strlen(text), &doc, &err) < 0) {
		doctor_wrong(c->d, gs_asprintf("edit %s", path), "containerd: %s: %s", path,
			     err.msg);
		return;
	}
	version = setup_version(&doc);
	c->cri = setup_cri_table(version);
	if (c->version < 3 && toml_below(&doc, c->cri) && !c->replaced_by)
		c->replaced_by = gs_strdup(path);
	read_tables(c, path, &doc);
}

static void read_imports(struct containerd *c, const struct toml *doc)
{
	const struct toml_item *item = toml_find(doc, "imports");
	cleanup_strv struct gs_strv list = { 0 };

	if (item)
		(void)toml_strings(doc, item, &list);
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i][0] == '/')
			root_glob(c->d->root, list.v[i], read_import, c);
}

static void judge_handler(struct containerd *c, const char *setup)
{
	struct doctor *d = c->d;
	cleanup_free char *wrong = NULL;
	int kubelet = kubelet_driver(d);

	if (!c->handler.there) {
		doctor_wrong(d, gs_strdup(setup),
			     "containerd has no handler \"" SETUP_HANDLER "\": no container passes "
			     "through gpushare-runtime");
		return;
	}
	wrong = setup_handler_wrong(&c->handler, d->node.binary);
	if (wrong && !(c->binary && strcmp(c->binary, d->node.binary) != 0 &&
		       is_program(d->root, c->binary) && c->handler.pod_annotations &&
		       c->handler.container_annotations)) {
		doctor_wrong(d, gs_asprintf("take the handler out of %s, then %s", c->where, setup),
			     "containerd's handler in %s: %s", c->where, wrong);
		return;
	}
	if (kubelet >= 0 && kubelet != (c->handler.systemd_cgroup == 1))
		doctor_wrong(d,
			     gs_asprintf("%s --cgroup-driver %s && systemctl restart containerd",
					 setup, kubelet ? "systemd" : "cgroupfs"),
			     "containerd's handler has another cgroup driver than the kubelet (%s)",
			     kubelet ? "systemd" : "cgroupfs");
	else if (kubelet < 0 && c->runc_systemd >= 0 &&
		 c->runc_systemd != (c->handler.systemd_cgroup == 1))
		doctor_wrong(d, gs_asprintf("%s && systemctl restart containerd", setup),
			     "containerd's handler has another cgroup driver than its runc");
	else
		doctor_ok(d, "containerd: in %s, with both lists of annotations", c->where);
}

static void check_containerd(struct doctor *d)
{
	static const char setup[] = "gpusharectl setup containerd";
	struct containerd c = { .d = d, .runc_systemd = -1 };
	cleanup_free char *text = NULL;
	cleanup_toml struct toml doc = { 0 };
	struct gs_err err = { 0 };
	size_t before = d->n;
	int r = root_read(d->root, CONTAINERD_MAIN, &text, &err);

	if (r == 0) {
		r = toml_parse(text, strlen(text), &doc, &err);
		if (r < 0)
			(void)gs_err_prefix(&err, CONTAINERD_MAIN);
	}
	if (r < 0 && r != -ENOENT) {
		doctor_wrong(d, gs_strdup("edit " CONTAINERD_MAIN), "containerd: %s", err.msg);
		return;
	}
	c.version = r == 0 ? setup_version(&doc) : 2;
	c.cri = setup_cri_table(c.version);
	if (setup_cri_disabled(&doc))
		doctor_wrong(d, gs_strdup("take it out of disabled_plugins in " CONTAINERD_MAIN),
			     "containerd: the CRI plugin is switched off");
	else if (r == 0 && c.version < 2)
		doctor_wrong(d,
			     gs_strdup("containerd config default >" CONTAINERD_MAIN
				       "   # and write your changes into it; then "
				       "gpusharectl setup containerd"),
			     "containerd: " CONTAINERD_MAIN
			     " is of version 1, in which our handler "
			     "means nothing");
	if (d->n > before)
		return;
	if (r == 0) {
		read_tables(&c, CONTAINERD_MAIN, &doc);
		read_imports(&c, &doc);
	}
	if (c.replaced_by && c.where && strcmp(c.where, CONTAINERD_MAIN) == 0)
		doctor_wrong(
			d, gs_asprintf("move what is in %s into " CONTAINERD_MAIN, c.replaced_by),
			"containerd: below 2.0 the imported %s replaces the section that has our "
			"handler",
			c.replaced_by);
	judge_handler(&c, setup);
	free(c.binary);
	free(c.where);
	free(c.replaced_by);
}

/* ---- The others. */

/* Reads the TOML file; false: there is none, or it is broken. */
static bool read_toml(const struct doctor *d, const char *path, char **text, struct toml *doc)
{
	return root_read(d->root, path, text, NULL) == 0 &&
	       toml_parse(*text, strlen(*text), doc, NULL) == 0;
}

static void check_k3s(struct doctor *d, const char *name)
{
	cleanup_free char *path =
		gs_asprintf("/var/lib/rancher/%s/agent/etc/containerd/config.toml", name);
	cleanup_free char *setup = gs_asprintf("gpusharectl setup %s", name);
	struct containerd c = { .d = d, .runc_systemd = -1 };
	cleanup_free char *text = NULL;
	cleanup_toml struct toml doc = { 0 };
	struct setup_record *record = NULL;

	if (!read_toml(d, path, &text, &doc)) {
		doctor_note(d, gs_asprintf("systemctl start %s", name), "%s: %s can't be read",
			    name, path);
		return;
	}
	c.cri = setup_cri_table(setup_version(&doc));
	read_tables(&c, path, &doc);
	if (!c.where && setup_record_load(&d->node, name, &record, NULL) == 0)
		doctor_wrong(d, gs_asprintf("systemctl restart %s", name),
			     "%s was set up, and has not been restarted since", name);
	else
		judge_handler(&c, setup);
	setup_record_free(record);
	free(c.binary);
	free(c.where);
}

struct search {
	struct doctor *d;
	const char *key;
	char *where, *value;
};

static void see_key(const char *path, void *arg)
{
	struct search *search = arg;
	cleanup_free char *text = NULL;
	cleanup_toml struct toml doc = { 0 };
	const char *value = NULL;

	if (read_toml(search->d, path, &text, &doc))
		value = toml_string(&doc, search->key);
	if (!value)
		return;
	free(search->where);
	free(search->value);
	search->where = gs_strdup(path);
	search->value = gs_strdup(value);
}

static void check_crio(struct doctor *d)
{
	struct search search = { .d = d,
				 .key = "crio.runtime.runtimes." SETUP_HANDLER ".runtime_path" };

	root_glob(d->root, "/etc/crio/crio.conf", see_key, &search);
	root_glob(d->root, "/etc/crio/crio.conf.d/*", see_key, &search);
	if (!search.value)
		doctor_wrong(d, gs_strdup("gpusharectl setup crio"),
			     "CRI-O has no handler \"" SETUP_HANDLER "\"");
	else if (!is_program(d->root, search.value))
		doctor_wrong(d, gs_asprintf("mend runtime_path in %s", search.where),
			     "CRI-O's handler in %s: %s is not there, or not executable",
			     search.where, search.value);
	else
		doctor_ok(d, "CRI-O: in %s", search.where);
	free(search.where);
	free(search.value);
}

/* docker and podman serve no kubelet: they may have the runtime, and need not. */
static bool check_others(struct doctor *d)
{
	cleanup_free char *path = root_path(d->root, "/etc/docker/daemon.json");
	cleanup_json json_t *docker = json_load_file(path, 0, NULL);
	cleanup_free char *text = NULL;
	cleanup_toml struct toml podman = { 0 };
	bool found = false;

	if (json_object_get(json_object_get(docker, "runtimes"), SETUP_HANDLER)) {
		doctor_ok(d, "docker: in /etc/docker/daemon.json");
		found = true;
	}
	if (read_toml(d, "/etc/containers/containers.conf.d/gpushare.conf", &text, &podman) &&
	    toml_below(&podman, "engine.runtimes." SETUP_HANDLER)) {
		doctor_ok(d, "podman: in /etc/containers/containers.conf.d/gpushare.conf");
		found = true;
	}
	return found;
}

void doctor_handler(struct doctor *d)
{
	bool enough = check_others(d) && !root_has(d->root, "/var/lib/kubelet");
	size_t before = d->n;

	if (setup_k3s.found(&d->node))
		check_k3s(d, "k3s");
	if (setup_rke2.found(&d->node))
		check_k3s(d, "rke2");
	if (setup_crio.found(&d->node))
		check_crio(d);
	/* Where one of those serves the kubelet, containerd is docker's. */
	if (d->n == before && setup_containerd.found(&d->node) && !enough)
		check_containerd(d);
	if (d->n == before && !enough)
		doctor_wrong(
			d,
			gs_strdup("install one, or gpusharectl setup docker, gpusharectl setup "
				  "podman"),
			"there is neither containerd, CRI-O, k3s nor RKE2, and neither docker nor "
			"podman has the runtime \"" SETUP_HANDLER "\"");
}

void doctor_cri(struct doctor *d)
{
	static const char *const names[] = { "containerd", "cri-o", "none" };
	bool crio = setup_crio.found(&d->node);
	bool kubelet = root_has(d->root, "/var/lib/kubelet");
	enum gs_cri cri = d->config.cri;

	if (cri == GS_CRI_NONE && kubelet)
		doctor_wrong(d, gs_asprintf("take \"cri\" out of %s", d->config.path),
			     "\"cri\" is \"none\" on a node with a kubelet: any pod may say who it "
			     "is");
	else if ((cri == GS_CRI_CRIO) != crio && cri != GS_CRI_NONE)
		doctor_wrong(d,
			     crio ? gs_strdup("gpusharectl setup crio") :
				    gs_asprintf("take \"cri\" out of %s", d->config.path),
			     "\"cri\" is \"%s\", but this node has %sCRI-O: no container's name is "
			     "known",
			     names[cri], crio ? "" : "no ");
	else
		doctor_ok(d, "\"cri\" is \"%s\"", names[cri]);
}

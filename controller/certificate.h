/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook's certificate and the authority that signed it, all PEM, made with GnuTLS. */
#ifndef GPUSHARE_CONTROLLER_CERTIFICATE_H
#define GPUSHARE_CONTROLLER_CERTIFICATE_H

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <time.h>

#include "common/buf.h"
#include "common/err.h"

/* How long each lasts; it is made anew after two thirds of that. */
#define CERTIFICATE_DAYS 90
#define CERTIFICATE_AUTHORITY_DAYS 1095
/* A new authority signs only after everybody had time to hear of it. */
#define CERTIFICATE_SETTLE_S 3600

struct certificate {
	char *authorities; /* certificates, the newest first: what the API server trusts */
	char *authority_key; /* the newest one's */
	char *chain; /* what the webhook shows */
	char *key;
};

/* Frees what it holds; keys are wiped first. */
void certificate_free(struct certificate *cert);

/* A copy of all of it. */
struct certificate certificate_copy(const struct certificate *cert);

/*
 * Makes what is missing, broken, or due at @now, for a server of those @names: at first all of it;
 * later the certificate alone, or a new authority, which joins the old ones and signs only after
 * CERTIFICATE_SETTLE_S. *changed: something was. -EIO with GnuTLS's words; @cert is as it was then.
 */
int certificate_renew(struct certificate *cert, const struct gs_strv *names, time_t now,
		      bool *changed, struct gs_err *err);

/* When the shown certificate ends; 0: it can't be read. */
time_t certificate_end(const struct certificate *cert);

/* A certificate and its key, read. */
struct certificate_shown {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

/* Reads certificate and key. -EINVAL: they are none, or don't belong together. */
int certificate_show(const struct certificate *cert, struct certificate_shown **ret,
		     struct gs_err *err);
void certificate_shown_free(struct certificate_shown *shown);

/*
 * Copies of both for one handshake, allocated for GNUTLS_CERT_RETR_DEINIT_ALL: a handshake waits
 * for its client between choosing a certificate and signing with it, and @shown may be gone by
 * then. -1: GnuTLS can't.
 */
int certificate_give(const struct certificate_shown *shown, gnutls_pcert_st **ret_chain,
		     gnutls_privkey_t *ret_key);

#endif

// SPDX-License-Identifier: Apache-2.0
/* The webhook's certificate and authority. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/certificate.h"

#define DAY_S ((time_t)24 * 3600)
/* Clocks of a cluster differ. */
#define BACKDATE_S ((time_t)300)
/* Old authorities are kept until they end; more than these is a mistake of somebody. */
#define AUTHORITIES_MAX 8

static void free_crt(gnutls_x509_crt_t *crt)
{
	if (*crt)
		gnutls_x509_crt_deinit(*crt);
}

static void free_key(gnutls_x509_privkey_t *key)
{
	if (*key)
		gnutls_x509_privkey_deinit(*key);
}

#define cleanup_crt __attribute__((cleanup(free_crt)))
#define cleanup_key __attribute__((cleanup(free_key)))

struct authorities {
	gnutls_x509_crt_t *v;
	unsigned int n;
};

static void free_authorities(struct authorities *list)
{
	for (unsigned int i = 0; i < list->n; i++)
		gnutls_x509_crt_deinit(list->v[i]);
	gnutls_free(list->v);
}

void certificate_free(struct certificate *cert)
{
	free(cert->authorities);
	if (cert->authority_key)
		explicit_bzero(cert->authority_key, strlen(cert->authority_key));
	free(cert->authority_key);
	free(cert->chain);
	if (cert->key)
		explicit_bzero(cert->key, strlen(cert->key));
	free(cert->key);
	*cert = (struct certificate){ 0 };
}

static char *copy(const char *s)
{
	return s ? gs_strdup(s) : NULL;
}

struct certificate certificate_copy(const struct certificate *cert)
{
	return (struct certificate){ copy(cert->authorities), copy(cert->authority_key),
				     copy(cert->chain), copy(cert->key) };
}

static int failed(int code, const char *what, struct gs_err *err)
{
	return gs_err_set(err, EIO, "%s: %s", what, gnutls_strerror(code));
}

static gnutls_datum_t datum(const char *text)
{
	return (gnutls_datum_t){ (unsigned char *)text, text ? (unsigned int)strlen(text) : 0 };
}

/* ---- Reading. */

static int read_crt(const char *pem, gnutls_x509_crt_t *ret)
{
	gnutls_datum_t data = datum(pem);
	int code;

	if (!pem)
		return -EINVAL;
	code = gnutls_x509_crt_init(ret);
	if (code == 0)
		code = gnutls_x509_crt_import(*ret, &data, GNUTLS_X509_FMT_PEM);
	return code < 0 ? -EINVAL : 0;
}

static int read_key(const char *pem, gnutls_x509_privkey_t *ret)
{
	gnutls_datum_t data = datum(pem);
	int code;

	if (!pem)
		return -EINVAL;
	code = gnutls_x509_privkey_init(ret);
	if (code == 0)
		code = gnutls_x509_privkey_import(*ret, &data, GNUTLS_X509_FMT_PEM);
	return code < 0 ? -EINVAL : 0;
}

static void read_authorities(const char *pem, struct authorities *ret)
{
	gnutls_datum_t data = datum(pem);

	*ret = (struct authorities){ 0 };
	if (!pem ||
	    gnutls_x509_crt_list_import2(&ret->v, &ret->n, &data, GNUTLS_X509_FMT_PEM, 0) < 0)
		*ret = (struct authorities){ 0 };
}

static bool belongs(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	unsigned char a[64], b[64];
	size_t na = sizeof(a), nb = sizeof(b);

	return gnutls_x509_crt_get_key_id(crt, 0, a, &na) == 0 &&
	       gnutls_x509_privkey_get_key_id(key, 0, b, &nb) == 0 && na == nb &&
	       memcmp(a, b, na) == 0;
}

/* Has it lived two thirds of its time? */
static bool is_due(gnutls_x509_crt_t crt, time_t now)
{
	time_t from = gnutls_x509_crt_get_activation_time(crt);
	time_t to = gnutls_x509_crt_get_expiration_time(crt);

	return now < from || now - from > (to - from) / 3 * 2;
}

static bool is_over(gnutls_x509_crt_t crt, time_t now)
{
	return now < gnutls_x509_crt_get_activation_time(crt) ||
	       now >= gnutls_x509_crt_get_expiration_time(crt);
}

/* May it sign now? */
static bool is_authority(gnutls_x509_crt_t crt, time_t now)
{
	return !is_over(crt, now) && gnutls_x509_crt_get_ca_status(crt, NULL) > 0;
}

static bool signed_by(gnutls_x509_crt_t crt, gnutls_x509_crt_t authority)
{
	unsigned int status = 1;

	return gnutls_x509_crt_verify(crt, &authority, 1, GNUTLS_VERIFY_DISABLE_TIME_CHECKS,
				      &status) == 0 &&
	       status == 0;
}

static bool has_names(gnutls_x509_crt_t crt, const struct gs_strv *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!gnutls_x509_crt_check_hostname(crt, names->v[i]))
			return false;
	return true;
}

/* ---- Making. */

static int new_key(gnutls_x509_privkey_t *ret, char **pem, struct gs_err *err)
{
	gnutls_datum_t out = { 0 };
	int code = gnutls_x509_privkey_init(ret);

	if (code == 0)
		code = gnutls_x509_privkey_generate(
			*ret, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (code == 0)
		code = gnutls_x509_privkey_export2(*ret, GNUTLS_X509_FMT_PEM, &out);
	if (code < 0)
		return failed(code, "making a key", err);
	*pem = gs_strndup((char *)out.data, out.size);
	gnutls_memset(out.data, 0, out.size);
	gnutls_free(out.data);
	return 0;
}

/* What every certificate of ours has; @name is its subject's. */
static int fill(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, const char *name, time_t now,
		time_t days)
{
	unsigned char serial[16], id[64];
	size_t len = sizeof(id);
	int code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] &= 0x7f; /* a positive number */
	serial[0] |= 0x01;
	if (code == 0)
		code = gnutls_x509_crt_set_version(crt, 3);
	if (code == 0)
		code = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
	if (code == 0)
		code = gnutls_x509_crt_set_activation_time(crt, now - BACKDATE_S);
	if (code == 0)
		code = gnutls_x509_crt_set_expiration_time(crt, now + days * DAY_S);
	if (code == 0)
		code = gnutls_x509_crt_set_key(crt, key);
	if (code == 0)
		code = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
						     (unsigned int)strlen(name));
	if (code == 0)
		code = gnutls_x509_crt_get_key_id(crt, 0, id, &len);
	if (code == 0)
		code = gnutls_x509_crt_set_subject_key_id(crt, id, len);
	return code;
}

static int export_pem(gnutls_x509_crt_t crt, char **ret)
{
	gnutls_datum_t out = { 0 };
	int code = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &out);

	if (code < 0)
		return code;
	*ret = gs_strndup((char *)out.data, out.size);
	gnutls_free(out.data);
	return 0;
}

/* A new authority in front of those of @cert that have not ended. */
static int new_authority(struct certificate *cert, time_t now, struct gs_err *err)
{
	__attribute__((cleanup(free_authorities))) struct authorities old = { 0 };
	cleanup_key gnutls_x509_privkey_t key = NULL;
	cleanup_crt gnutls_x509_crt_t crt = NULL;
	cleanup_free char *key_pem = NULL;
	struct gs_buf all = { 0 };
	char *pem = NULL;
	int code, r = new_key(&key, &key_pem, err);

	if (r < 0)
		return r;
	code = gnutls_x509_crt_init(&crt);
	if (code == 0)
		code = fill(crt, key, "gpushare-controller authority", now,
			    CERTIFICATE_AUTHORITY_DAYS);
	if (code == 0)
		code = gnutls_x509_crt_set_basic_constraints(crt, 1, 0);
	if (code == 0)
		code = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN |
								  GNUTLS_KEY_CRL_SIGN);
	if (code == 0)
		code = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0);
	if (code == 0)
		code = export_pem(crt, &pem);
	if (code < 0)
		return failed(code, "making an authority", err);
	gs_buf_adds(&all, pem);
	free(pem);
	read_authorities(cert->authorities, &old);
	for (unsigned int i = 0; i < old.n && i < AUTHORITIES_MAX; i++) {
		if (!is_authority(old.v[i], now) || export_pem(old.v[i], &pem) < 0)
			continue;
		gs_buf_adds(&all, pem);
		free(pem);
	}
	free(cert->authorities);
	cert->authorities = gs_buf_steal(&all);
	free(cert->authority_key);
	cert->authority_key = gs_steal(key_pem);
	return 0;
}

static int new_chain(struct certificate *cert, const struct gs_strv *names, time_t now,
		     struct gs_err *err)
{
	cleanup_key gnutls_x509_privkey_t key = NULL, authority_key = NULL;
	cleanup_crt gnutls_x509_crt_t crt = NULL, authority = NULL;
	cleanup_free char *key_pem = NULL;
	unsigned char id[64];
	size_t len = sizeof(id);
	char *pem = NULL;
	int code, r = new_key(&key, &key_pem, err);

	if (r < 0)
		return r;
	if (read_crt(cert->authorities, &authority) < 0 ||
	    read_key(cert->authority_key, &authority_key) < 0)
		return gs_err_set(err, EINVAL, "the authority can't be read");
	code = gnutls_x509_crt_init(&crt);
	if (code == 0)
		code = fill(crt, key, "gpushare-controller", now, CERTIFICATE_DAYS);
	for (size_t i = 0; code == 0 && i < names->n; i++)
		code = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, names->v[i],
							    (unsigned int)strlen(names->v[i]),
							    GNUTLS_FSAN_APPEND);
	if (code == 0)
		code = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
	if (code == 0)
		code = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (code == 0)
		code = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (code == 0)
		code = gnutls_x509_crt_get_subject_key_id(authority, id, &len, NULL);
	if (code == 0)
		code = gnutls_x509_crt_set_authority_key_id(crt, id, len);
	if (code == 0)
		code = gnutls_x509_crt_sign2(crt, authority, authority_key, GNUTLS_DIG_SHA256, 0);
	if (code == 0)
		code = export_pem(crt, &pem);
	if (code < 0)
		return failed(code, "making a certificate", err);
	free(cert->chain);
	cert->chain = pem;
	free(cert->key);
	cert->key = gs_steal(key_pem);
	return 0;
}

/* ---- What is due. */

static bool authority_is_good(const struct certificate *cert, time_t now)
{
	cleanup_crt gnutls_x509_crt_t authority = NULL;
	cleanup_key gnutls_x509_privkey_t key = NULL;

	return read_crt(cert->authorities, &authority) == 0 &&
	       read_key(cert->authority_key, &key) == 0 && belongs(authority, key) &&
	       is_authority(authority, now);
}

static bool authority_is_due(const struct certificate *cert, time_t now)
{
	cleanup_crt gnutls_x509_crt_t authority = NULL;

	return read_crt(cert->authorities, &authority) < 0 || is_due(authority, now);
}

static bool is_settled(const struct certificate *cert, time_t now)
{
	cleanup_crt gnutls_x509_crt_t authority = NULL;

	return read_crt(cert->authorities, &authority) == 0 &&
	       now - gnutls_x509_crt_get_activation_time(authority) >
		       CERTIFICATE_SETTLE_S + BACKDATE_S;
}

/* Would a client that trusts our authorities take it? *newest: the newest one signed it. */
static bool chain_is_good(const struct certificate *cert, const struct gs_strv *names, time_t now,
			  bool *due)
{
	__attribute__((cleanup(free_authorities))) struct authorities all = { 0 };
	cleanup_crt gnutls_x509_crt_t crt = NULL;
	cleanup_key gnutls_x509_privkey_t key = NULL;
	bool trusted = false;

	*due = true;
	if (read_crt(cert->chain, &crt) < 0 || read_key(cert->key, &key) < 0 ||
	    !belongs(crt, key) || is_over(crt, now) || !has_names(crt, names))
		return false;
	read_authorities(cert->authorities, &all);
	for (unsigned int i = 0; i < all.n && !trusted; i++) {
		trusted = is_authority(all.v[i], now) && signed_by(crt, all.v[i]);
		if (trusted)
			*due = i > 0 || is_due(crt, now);
	}
	return trusted;
}

static int renew(struct certificate *cert, const struct gs_strv *names, time_t now, bool *changed,
		 struct gs_err *err)
{
	bool due, good;
	int r = 0;

	*changed = false;
	if (!authority_is_good(cert, now) || authority_is_due(cert, now)) {
		r = new_authority(cert, now, err);
		*changed = true;
	}
	if (r < 0)
		return r;
	good = chain_is_good(cert, names, now, &due);
	if (!good || (due && is_settled(cert, now))) {
		r = new_chain(cert, names, now, err);
		*changed = true;
	}
	return r;
}

int certificate_renew(struct certificate *cert, const struct gs_strv *names, time_t now,
		      bool *changed, struct gs_err *err)
{
	struct certificate new = certificate_copy(cert);
	int r = renew(&new, names, now, changed, err);

	if (r < 0) {
		*changed = false;
		certificate_free(&new);
		return r;
	}
	certificate_free(cert);
	*cert = new;
	return 0;
}

time_t certificate_end(const struct certificate *cert)
{
	cleanup_crt gnutls_x509_crt_t crt = NULL;

	return read_crt(cert->chain, &crt) < 0 ? 0 : gnutls_x509_crt_get_expiration_time(crt);
}

/* ---- Showing it. */

int certificate_show(const struct certificate *cert, struct certificate_shown **ret,
		     struct gs_err *err)
{
	struct certificate_shown *shown = gs_calloc(1, sizeof(*shown));

	if (read_crt(cert->chain, &shown->crt) < 0 || read_key(cert->key, &shown->key) < 0 ||
	    !belongs(shown->crt, shown->key)) {
		certificate_shown_free(shown);
		return gs_err_set(err, EINVAL, "no certificate with its key");
	}
	*ret = shown;
	return 0;
}

void certificate_shown_free(struct certificate_shown *shown)
{
	if (!shown)
		return;
	free_crt(&shown->crt);
	free_key(&shown->key);
	free(shown);
}

int certificate_give(const struct certificate_shown *shown, gnutls_pcert_st **ret_chain,
		     gnutls_privkey_t *ret_key)
{
	gnutls_pcert_st *chain = gnutls_calloc(1, sizeof(*chain));
	gnutls_privkey_t key = NULL;

	if (chain && gnutls_privkey_init(&key) == 0 &&
	    gnutls_privkey_import_x509(key, shown->key, GNUTLS_PRIVKEY_IMPORT_COPY) == 0 &&
	    gnutls_pcert_import_x509(chain, shown->crt, 0) == 0) {
		*ret_chain = chain;
		*ret_key = key;
		return 0;
	}
	if (key)
		gnutls_privkey_deinit(key);
	gnutls_free(chain);
	return -1;
}

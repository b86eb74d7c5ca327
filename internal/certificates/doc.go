// Package certificates is what TLS needs of a user: certificate authorities to trust, a client certificate and its key,
// each in a file or as text. Errors say what is wrong with it, and never what is in it.
package certificates

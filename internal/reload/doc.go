// Package reload keeps the worker's configuration in step with the file that it comes from.
package reload

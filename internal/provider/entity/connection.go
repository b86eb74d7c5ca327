package entity

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// takeOver sets the session to the provider's data, which is nil as long as the provider is not configured.
func takeOver(taken **session.Session, providerData any) diag.Diagnostics {
	if providerData == nil {
		return nil
	}
	made, ok := providerData.(*session.Session)
	if !ok {
		return diag.Diagnostics{unexpectedProviderData(providerData)}
	}
	*taken = made
	return nil
}

// requireConnection is an error if the broker cannot be asked at apply.
func (e *entity[M, S]) requireConnection() diag.Diagnostics {
	if !e.session.Connected() {
		return diag.Diagnostics{notConnected()}
	}
	return nil
}

package acctest

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Listed is a resource that `terraform query` finds.
type Listed struct {
	Name string
	// Resource has the configuration that -generate-config-out writes, and an instance that the import block names.
	Resource *Core
	Warnings []string
}

// Query lists resources as `terraform query` does.
func (p *Process) Query(ctx context.Context, kind string, config map[string]any) ([]Listed, error) {
	if err := p.start(ctx, Times(), map[string]any{}); err != nil {
		return nil, err
	}
	of, err := dynamic(ctyType(p.schemas.ListResourceSchemas[kind].ValueType()), config)
	if err != nil {
		return nil, err
	}
	lists, _ := p.server.(tfprotov6.ListResourceServer)
	stream, err := lists.ListResource(ctx, &tfprotov6.ListResourceRequest{TypeName: kind, Config: of, IncludeResource: true, Limit: 10_000})
	if err != nil {
		return nil, err
	}
	var all []Listed
	for result := range stream.Results {
		if err := failure(result.Diagnostics); err != nil {
			return nil, err
		}
		listed := Listed{Name: result.DisplayName, Resource: &Core{Type: kind, Times: Quick()}}
		for _, warning := range result.Diagnostics {
			listed.Warnings = append(listed.Warnings, warning.Detail)
		}
		decoded, err := instance{state: result.Resource}.json(p, kind)
		if err != nil {
			return nil, err
		}
		state, _ := decoded.(map[string]any)
		listed.Resource.Config = generated(p.schemas.ResourceSchemas[kind].Block, state)
		request := &tfprotov6.ImportResourceStateRequest{TypeName: kind, Identity: result.Identity}
		if err := listed.Resource.imported(ctx, p.server, request); err != nil {
			return nil, fmt.Errorf("%s: %w", listed.Name, err)
		}
		all = append(all, listed)
	}
	return all, nil
}

// generated is the configuration that Terraform generates from a state. It leaves out secrets and empty texts.
func generated(of *tfprotov6.SchemaBlock, state map[string]any) map[string]any {
	config := map[string]any{}
	for _, attribute := range of.Attributes {
		value := state[attribute.Name]
		left := attribute.Sensitive || attribute.Computed && !attribute.Optional || attribute.Optional && value == ""
		if value != nil && !left {
			config[attribute.Name] = value
		}
	}
	for _, block := range of.BlockTypes {
		var contents []any
		listed, _ := state[block.TypeName].([]any)
		for _, each := range listed {
			content, _ := each.(map[string]any)
			contents = append(contents, generated(block.Block, content))
		}
		config[block.TypeName] = contents
	}
	return config
}

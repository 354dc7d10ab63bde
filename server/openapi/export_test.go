package openapi

// Render is render, for the tests.
var Render = render

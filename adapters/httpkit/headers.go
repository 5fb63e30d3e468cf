
// Credential is the credential that the request carries, "" for none that is
// well formed. It is for public routes that tell more to some.
func (c *Call) Credential() string { return Bearer(c.gin.Request.Header) }

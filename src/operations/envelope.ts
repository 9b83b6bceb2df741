/** The envelope of inputs and answers of the typed API: the one that superjson gives to plain JSON. See docs/adr/0001. */

export interface Envelope {
  readonly json?: unknown
}

export function toEnvelope(value: unknown): Envelope {
  return { json: value }
}

export function fromEnvelope({ json }: Envelope): unknown {
  return json
}

/** The transformer of our own clients; JSON cannot say `undefined`, and a call without an input is one without fields. */
export const clientTransformer = {
  input: { serialize: (input: unknown) => toEnvelope(input ?? {}), deserialize: fromEnvelope },
  output: { serialize: toEnvelope, deserialize: fromEnvelope },
}

/** Wraps tRPC inputs and results in superjson's envelope for plain JSON (ADR 0001). */

export const outputTransformer = {
  serialize: (value: unknown) => ({ json: value }),
  deserialize: ({ json }: { readonly json?: unknown }) => json,
}

/**
 * The transformer for Parley's clients. Replaces a missing input with an empty object, because JSON cannot
 * represent `undefined`.
 */
export const clientTransformer = {
  input: { ...outputTransformer, serialize: (input: unknown) => ({ json: input ?? {} }) },
  output: outputTransformer,
}

/** Charges large request bodies to the rate limits, by their bytes and JSON values. */
import { MAX_JSON_VALUES } from '../http/request.ts'
import { type JsonOutline, outlineOf } from '../lib/formats/json.ts'

/** Bytes charged as one request. */
const BYTES_PER_REQUEST = 256 * 1024

/** Lower than for JSON, because parsing YAML costs far more. */
export const DEFINITION_BYTES_PER_REQUEST = 16 * 1024

/** Number of requests charged for a body with the maximum number of values. */
const REQUESTS_FOR_ALL_VALUES = 10

export interface BodyCost {
  readonly maxJsonValues?: number | undefined
  readonly bytesPerRequest?: number | undefined
}

/** Returns the body's outline, or undefined for a body so short that its values cost at most one request. */
export function outlineOfBody(
  bytes: Buffer,
  { maxJsonValues = MAX_JSON_VALUES }: BodyCost,
): JsonOutline | undefined {
  const isShort = bytes.length <= maxJsonValues / REQUESTS_FOR_ALL_VALUES
  return isShort ? undefined : outlineOf(bytes, maxJsonValues)
}

/** Returns the number of requests charged for a body. */
export function requestsOf(
  sizeBytes: number,
  outline: JsonOutline | undefined,
  { maxJsonValues = MAX_JSON_VALUES, bytesPerRequest = BYTES_PER_REQUEST }: BodyCost,
): number {
  const byValues = ((outline?.values ?? 0) * REQUESTS_FOR_ALL_VALUES) / maxJsonValues
  return Math.max(1, Math.ceil(sizeBytes / bytesPerRequest), Math.ceil(byValues))
}

/** Charges the rate limits for what a body costs: its bytes and its values, each in steps that take a few milliseconds of CPU. */
import { MAX_JSON_VALUES } from '../http/request.ts'
import { type JsonOutline, outlineOf } from '../lib/formats/json.ts'

/** The bytes that count as one request. */
const BYTES_PER_REQUEST = 256 * 1024

/** YAML costs far more to read than JSON. */
export const DEFINITION_BYTES_PER_REQUEST = 16 * 1024

/** A body with as many values as are allowed counts as this many requests. */
const REQUESTS_FOR_ALL_VALUES = 10

export interface BodyCost {
  readonly maxJsonValues?: number | undefined
  readonly bytesPerRequest?: number | undefined
}

/** The outline of a body that may cost more than one request because of its values. */
export function outlineOfBody(
  bytes: Buffer,
  { maxJsonValues = MAX_JSON_VALUES }: BodyCost,
): JsonOutline | undefined {
  const isShort = bytes.length <= maxJsonValues / REQUESTS_FOR_ALL_VALUES
  return isShort ? undefined : outlineOf(bytes, maxJsonValues)
}

/** The number of requests that a body counts as. */
export function requestsOf(
  sizeBytes: number,
  outline: JsonOutline | undefined,
  { maxJsonValues = MAX_JSON_VALUES, bytesPerRequest = BYTES_PER_REQUEST }: BodyCost,
): number {
  const byValues = ((outline?.values ?? 0) * REQUESTS_FOR_ALL_VALUES) / maxJsonValues
  return Math.max(1, Math.ceil(sizeBytes / bytesPerRequest), Math.ceil(byValues))
}

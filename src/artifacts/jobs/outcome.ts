/** Takes down what a host records of an upload. Decision: 9 (Host hooks). */
import { ServiceError } from '../../errors.ts'
import { depthOf } from '../../json-outline.ts'

/** Security: 2.5. */
const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 64

/** @throws ServiceError `invalid_value` for what is no JSON value, is too large, or nested too deep. */
export function renderOutcome(value: unknown): string {
  const json = toJson(value)
  if (json === undefined) throw refused('is no JSON value')
  const bytes = Buffer.from(json)
  if (bytes.length > MAX_BYTES)
    throw refused(`has ${bytes.length} bytes as JSON, and ${MAX_BYTES} is the most`)
  if (depthOf(bytes) > MAX_DEPTH) throw refused(`is nested deeper than ${MAX_DEPTH}`)
  return json
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw refused(`is no JSON value (${error instanceof Error ? error.message : error})`)
  }
}

function refused(problem: string): ServiceError {
  return new ServiceError('invalid_value', `recordOutcome: the outcome ${problem}`, { param: 'outcome' })
}

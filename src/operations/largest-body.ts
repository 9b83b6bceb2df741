/** Limits a request body by who sends it: anybody can read an agent key in a page. */
import type { Config } from '../config/config.ts'
import type { AnyCaller } from './operation.ts'

/** The most bytes of a body that this caller may send to an operation that takes `maxBytes`. */
export function largestBodyOf(
  { limits }: Pick<Config, 'limits'>,
  caller: Pick<AnyCaller, 'kind'> | undefined,
  maxBytes: number,
): number {
  return caller?.kind === 'agent' ? Math.min(maxBytes, limits.maxAgentBodyBytes) : maxBytes
}

/** Limits request bodies by caller: agent keys are public, so their bodies are smaller. */
import type { Config } from '../config/config.ts'
import type { AnyCaller } from './operation.ts'

export function limitBodyBytes(
  { limits }: Pick<Config, 'limits'>,
  caller: Pick<AnyCaller, 'kind'> | undefined,
  maxBytes: number,
): number {
  return caller?.kind === 'agent' ? Math.min(maxBytes, limits.maxAgentBodyBytes) : maxBytes
}

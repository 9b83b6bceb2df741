/** Tests a provider by requesting its model list, and describes failures for administrators. */
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import { createRemote, type RemoteConfig } from '../providers/create.ts'
import { BackendFailure, type BackendModel } from '../providers/provider.ts'

export interface ProviderTest {
  readonly latencyMs: number
  /** Undefined after a failure. */
  readonly models: readonly BackendModel[] | undefined
  /** The problem and its solution; undefined after a success. */
  readonly problem: string | undefined
}

/** Lists the provider's models once; never throws if the provider fails. */
export async function testProvider(
  { config, clock }: { readonly config: Config; readonly clock: Pick<Clock, 'monotonic'> },
  provider: RemoteConfig,
  signal: AbortSignal = new AbortController().signal,
): Promise<ProviderTest> {
  const backend = await createRemote(provider, config.timings, { reach: reachOf(config) })
  const startedMs = clock.monotonic()
  const latencyMs = () => Math.round(clock.monotonic() - startedMs)
  try {
    const models = await backend.listModels(signal)
    return { latencyMs: latencyMs(), models, problem: undefined }
  } catch (error) {
    if (!(error instanceof BackendFailure)) throw error
    return { latencyMs: latencyMs(), models: undefined, problem: describeFailure(error, provider.url) }
  } finally {
    await backend.close()
  }
}

export function reachOf({ consoleProviders }: Pick<Config, 'consoleProviders'>): 'any' | 'public' {
  return consoleProviders === 'public' ? 'public' : 'any'
}

/** Describes why a provider's model list could not be read, and what to do about it. */
export function describeFailure(failure: unknown, url: string): string {
  if (!(failure instanceof BackendFailure)) return 'The provider returned an invalid response.'
  const { kind, status } = failure
  if (kind === 'timeout') return `${url} did not respond in time. Check the base URL and the network.`
  if (kind === 'unreachable') return describeUnreachable(failure, new URL(url))
  if (kind === 'protocol')
    return `${url}/models did not return a model list. Check the base URL; most end in /v1.`
  if (status === 401 || status === 403)
    return `The provider rejected the API key (status ${status}). Enter a valid key.`
  if (status === 404) return `${url}/models does not exist (status 404). Check the base URL; most end in /v1.`
  const said = failure.said === undefined ? '' : `: ${failure.said.message}`
  return `The provider responded with status ${status}${said}`
}

const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|ALTNAME/

function describeUnreachable(failure: BackendFailure, { host, hostname }: URL): string {
  // A local server's failure wraps its connection's failure.
  const cause = failure.cause instanceof BackendFailure ? failure.cause.cause : failure.cause
  const { code = '', message = '' } = (cause ?? {}) as { code?: string; message?: string }
  if (code === 'ECONNREFUSED')
    return `No server is listening at ${host}. Start the server, or correct the base URL.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `The host name ${hostname} cannot be resolved. Check the base URL and the network.`
  if (certificateCodes.test(code))
    return `The TLS certificate of ${host} is not valid (${code}). Correct the certificate or the base URL.`
  // The message for a rejected address already states the rule.
  if (/ is (a link-local|not a public)/.test(message)) return message
  return `The connection to ${host} failed${code === '' ? '' : ` (${code})`}. Check the base URL and the network.`
}

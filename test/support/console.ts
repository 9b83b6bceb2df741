/** Calls the service as users whom an authenticating proxy has identified. */
import type { Answer, CallOptions, TestApp } from './app.ts'
import { callProcedure } from './rpc.ts'

/** Settings that trust identity headers from 127.0.0.1. */
export const behindProxy = {
  PARLEY_TRUST_FORWARDED_AUTH: 'true',
  PARLEY_TRUSTED_PROXIES: '127.0.0.1',
} as const

/** The headers that a console page sends with every request. */
export const consoleHeaders = { 'Sec-Fetch-Site': 'same-origin', 'X-Requested-With': 'parley' } as const

/** Returns call options with the headers of a console page that the user has opened. */
export function asUser(email: string, options: CallOptions = {}): CallOptions {
  return { ...options, key: null, headers: { 'X-Email': email, ...consoleHeaders, ...options.headers } }
}

/** Returns the response body of `GET /v1/manager/me` for the user. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export async function readMe(app: TestApp, email: string): Promise<any> {
  const { status, body, text } = await app.call('GET', '/v1/manager/me', asUser(email))
  if (status !== 200) throw new Error(text)
  return body
}

export function claimKey(app: TestApp, email: string, key: unknown): Promise<Answer> {
  return app.call('POST', '/v1/manager/claim-key', asUser(email, { body: { parent_key: key } }))
}

/** Rotates the user's active key; returns the new key. */
export async function revealKey(app: TestApp, email: string): Promise<string> {
  const { body } = await callProcedure(app, 'keys.rotate', {}, asUser(email))
  return body.result.data.json.key
}

/** Speaks as people do whom a proxy has signed in. */
import type { CallOptions } from './app.ts'

/** Settings under which this machine's loopback address is the proxy. */
export const proxied = { PARLEY_TRUST_FORWARDED_AUTH: 'true', PARLEY_TRUSTED_PROXIES: '127.0.0.1' } as const

/** What a page of our own sends with every call. */
export const ownPage = { 'Sec-Fetch-Site': 'same-origin', 'X-Requested-With': 'parley' } as const

/** A call of that user's from our own page. */
export function as(email: string, options: CallOptions = {}): CallOptions {
  return { ...options, key: null, headers: { 'X-Email': email, ...ownPage, ...options.headers } }
}

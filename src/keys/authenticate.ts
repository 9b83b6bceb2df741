/** Finds the caller behind the credentials of a request: a key, a token, a session, or what a proxy says. */
import { type ArtifactTokens, isToken } from '../artifacts/tokens.ts'
import type { UserDirectory } from '../console/directory.ts'
import type { Authenticator } from '../rpc/authorize.ts'
import type { KeyDirectory } from './directory.ts'

export interface CredentialStores {
  readonly keys: KeyDirectory
  readonly tokens: ArtifactTokens
  readonly users: UserDirectory
}

export function createAuthenticator({ keys, tokens, users }: CredentialStores): Authenticator {
  return {
    find(arrival) {
      const text = arrival.bearer ?? arrival.token
      if (text !== undefined && isToken(text)) return tokens.find(text)
      if (arrival.bearer !== undefined) return keys.find(arrival.bearer)
      return arrival.ambient === undefined ? undefined : users.find(arrival.ambient, arrival)
    },
  }
}

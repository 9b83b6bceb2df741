/** Obtains the identity of the page's user, and notices when another user signs in. */
import type { FrameOptions } from '../../options.ts'
import { isRecord } from '../../values.ts'
import { ChatFailure } from '../failure.ts'

/** Maximum time for the page to return another identity. */
const PAGE_TIMEOUT_MS = 10_000

export interface VisitorIdentity {
  /** Uses the token in the options. */
  readonly configure: (options: FrameOptions) => void
  /** Whether the options contain a token that was not used yet. */
  readonly hasNew: () => boolean
  /** Returns the user that the token in the options states, like `userOf`. */
  readonly user: () => string | undefined
  /** Whether the page identifies its user. */
  readonly isUsed: () => boolean
  /**
   * Returns an identity for an exchange; undefined for an anonymous visitor. Asks the page for another one if the
   * token in the options was already used. @throws ChatFailure `identity_expired` if the page does not respond
   */
  readonly take: () => Promise<string | undefined>
  /** Ends a request to the page, whose response could identify the user before. */
  readonly reset: () => void
  /** Handles the page's response; an absent token means that the page could not provide one. */
  readonly receive: (token: string | undefined) => void
}

/** `askPage` requests an identity from the page, which calls `getVisitorToken`. */
export function createVisitorIdentity(askPage: () => void): VisitorIdentity {
  let token: string | undefined
  let unused: string | undefined
  let mayAsk = false
  let asking: Question | undefined

  function ask(): Promise<string | undefined> {
    if (asking === undefined) {
      const current = createQuestion()
      asking = current
      const timer = setTimeout(() => asking === current && answer(undefined), PAGE_TIMEOUT_MS)
      void current.promise.then(() => clearTimeout(timer))
      askPage()
    }
    return asking.promise
  }

  function answer(received: string | undefined): void {
    asking?.resolve(received)
    asking = undefined
  }

  return {
    configure({ visitorToken, given }) {
      if (userOf(visitorToken) !== userOf(token)) answer(undefined)
      if (visitorToken !== token) unused = visitorToken
      token = visitorToken
      mayAsk = given?.includes('getVisitorToken') ?? false
    },
    hasNew: () => unused !== undefined,
    user: () => userOf(token),
    isUsed: () => token !== undefined || mayAsk,
    async take() {
      const next = unused
      unused = undefined
      if (next !== undefined) return next
      // The server knows whether the token is expired or invalid.
      if (!mayAsk) return token
      const asked = await ask()
      if (asked === undefined) throw new ChatFailure({ code: 'identity_expired' })
      return asked
    },
    reset: () => answer(undefined),
    receive: answer,
  }
}

interface Question {
  readonly promise: Promise<string | undefined>
  readonly resolve: (token: string | undefined) => void
}

/** Does not use `Promise.withResolvers`, which visitors' older browsers do not have. */
function createQuestion(): Question {
  let settle: Question['resolve'] = () => {}
  const promise = new Promise<string | undefined>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (token) => settle(token) }
}

/** Returns the issuer and subject of a JWT without verifying it, or the token itself if it cannot be read. */
export function userOf(token: string | undefined): string | undefined {
  if (token === undefined) return undefined
  try {
    const [, payload = ''] = token.split('.')
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (one) =>
      one.charCodeAt(0),
    )
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    if (isRecord(claims)) return JSON.stringify([claims.iss, claims.sub])
  } catch {
    // The server rejects the token with a reason.
  }
  return token
}

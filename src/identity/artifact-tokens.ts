/** Mints and verifies signed tokens for uploading or viewing one artifact. Tokens are not stored. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { unixSeconds } from '../lib/clock.ts'
import type { TokenCaller } from '../operations/operation.ts'
import { type KeyDirectory, PREFIX } from './authenticate.ts'
import type { Dependencies } from './dependencies.ts'

export interface ArtifactTokens {
  mint(grant: Omit<TokenCaller, 'kind'>): string
  /**
   * Returns a token's caller, or undefined if the signature is wrong, the token has expired, or its parent
   * key is expired, disabled or revoked.
   */
  find(text: string): Promise<TokenCaller | undefined>
}

const layout = /^atk_([\w-]{8})\.([\w-]{1,1024})\.([\w-]{43})$/

const ISSUER = 'parley'
const [KEY_BYTES, KEY_ID_BYTES] = [32, 6]
const [KEY_PURPOSE, NAME_PURPOSE] = ['parley artifact token key', 'parley artifact token key id']

const Claims = z.strictObject({
  iss: z.literal(ISSUER),
  /** The artifact's id. */
  sub: z.string(),
  use: z.enum(['upload', 'view', 'attach']),
  /** The tenant's id. */
  ten: z.string(),
  /** Unix seconds. */
  exp: z.int(),
})

/** Signs tokens with HMAC-SHA256, using secrets derived from the installation's master keys. */
export function createTokens({
  sealer,
  clock,
  keys,
}: Pick<Dependencies, 'sealer' | 'clock'> & { readonly keys: KeyDirectory }): ArtifactTokens {
  const newest = toName(sealer.derive(NAME_PURPOSE, KEY_ID_BYTES))
  // A token contains its secret's id, so tokens that were signed with a former master key remain valid.
  const former = sealer.deriveFormer(KEY_PURPOSE, KEY_BYTES)
  const formerNames = sealer.deriveFormer(NAME_PURPOSE, KEY_ID_BYTES).map(toName)
  const secrets = new Map(formerNames.map((name, index) => [name, former[index] as Buffer]))
  secrets.set(newest, sealer.derive(KEY_PURPOSE, KEY_BYTES))

  function sign(body: string, keyId: string): string | undefined {
    const secret = secrets.get(keyId)
    return secret && createHmac('sha256', secret).update(body).digest('base64url')
  }

  function read(text: string): z.output<typeof Claims> | undefined {
    const [, keyId = '', claims = '', signature = ''] = layout.exec(text) ?? []
    const right = sign(`${PREFIX}${keyId}.${claims}`, keyId)
    if (right === undefined || !timingSafeEqual(Buffer.from(right), Buffer.from(signature))) return undefined
    return Claims.safeParse(JSON.parse(Buffer.from(claims, 'base64url').toString())).data
  }

  return {
    mint({ artifactId, use, tenantId, expiresAt }) {
      const claims = { iss: ISSUER, sub: artifactId, use, ten: tenantId, exp: expiresAt }
      const body = `${PREFIX}${newest}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
      return `${body}.${sign(body, newest)}`
    },
    async find(text) {
      const claims = read(text)
      if (claims === undefined || claims.exp <= unixSeconds(clock)) return undefined
      if (!(await keys.isLive(claims.ten))) return undefined
      return {
        kind: 'token',
        tenantId: claims.ten,
        artifactId: claims.sub,
        use: claims.use,
        expiresAt: claims.exp,
      }
    },
  }
}

function toName(bytes: Buffer): string {
  return bytes.toString('base64url')
}

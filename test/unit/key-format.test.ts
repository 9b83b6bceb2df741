/** Tests how keys are generated, parsed and sealed. */

import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { digestOf, hintOf, keyPrefixes, mintKey, parseKey } from '../../src/lib/api-key.ts'
import { newId } from '../../src/lib/ids.ts'
import { createSealer } from '../../src/lib/sealer.ts'
import { forgeKey } from '../support/forge-key.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const MASTER_KEY = 'a master key that is certainly longer than 32 bytes'

/** A source of random bytes that repeats a short list, so that fast-check can shrink and replay it. */
const randomSource = fc
  .uint8Array({ minLength: 64, maxLength: 64 })
  .filter((bytes) => bytes.some((byte) => byte < 248))
  .map((bytes) => {
    let position = 0
    return (count: number) => Uint8Array.from({ length: count }, () => bytes[position++ % bytes.length] ?? 0)
  })
const kind = fc.constantFrom('parent', 'agent')
const key = fc.tuple(kind, randomSource).map(([ofKind, random]) => mintKey(ofKind, random))

describe('a minted key', () => {
  test.each([
    ['parent', 'svc_'],
    ['agent', 'agnt_key-'],
  ] as const)(
    'of kind %s consists of the prefix %s, a 12-character public id, a 43-character secret and a checksum',
    (ofKind, prefix) => {
      const { text, publicId } = mintKey(ofKind, randomBytes)
      expect(text).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{61}$`))
      expect(text.slice(prefix.length, prefix.length + 12)).toBe(publicId)
      expect(forgeKey(prefix, text.slice(prefix.length, -6))).toBe(text)
    },
  )

  test('is parsed into its kind and public id', () => {
    fc.assert(
      fc.property(kind, randomSource, (ofKind, random) => {
        const minted = mintKey(ofKind, random)
        expect(parseKey(minted.text)).toEqual({ kind: ofKind, publicId: minted.publicId })
      }),
    )
  })

  test('can reuse the public id of an earlier key with a new secret', () => {
    const first = mintKey('parent', randomBytes)
    const second = mintKey('parent', randomBytes, first.publicId)
    expect(parseKey(second.text)).toEqual({ kind: 'parent', publicId: first.publicId })
    expect(second.text).not.toBe(first.text)
  })

  test('is hashed as a whole with SHA-256', () => {
    const { text, digest } = mintKey('agent', randomBytes)
    expect(digest).toBe(createHash('sha256').update(text).digest('hex'))
    expect(digestOf(text)).toBe(digest)
  })

  test('has a hint that consists of its prefix and last four characters', () => {
    const parent = mintKey('parent', randomBytes)
    expect(parent.hint).toBe(`svc_…${parent.text.slice(-4)}`)
    const agent = mintKey('agent', randomBytes)
    expect(hintOf(agent.text)).toBe(`agnt_key-…${agent.text.slice(-4)}`)
  })
})

describe('parseKey', () => {
  test('rejects a key with one character replaced', () => {
    const typo = fc.oneof(
      fc.constantFrom(...BASE62, '_', '-', ' '),
      fc.string({ minLength: 1, maxLength: 1 }),
    )
    fc.assert(
      fc.property(key, fc.nat(), typo, ({ text }, place, letter) => {
        const at = place % text.length
        fc.pre(text[at] !== letter)
        expect(parseKey(text.slice(0, at) + letter + text.slice(at + 1))).toBeUndefined()
      }),
      { numRuns: 2_000 },
    )
  })

  test('rejects a key with any base62 character replaced at any position', () => {
    const { text } = mintKey('parent', randomBytes)
    for (let at = 0; at < text.length; at++) {
      for (const letter of BASE62) {
        if (letter === text[at]) continue
        expect(parseKey(text.slice(0, at) + letter + text.slice(at + 1))).toBeUndefined()
      }
    }
  })

  test('rejects a key with two adjacent characters swapped, one missing or one added', () => {
    fc.assert(
      fc.property(key, fc.nat(), fc.constantFrom(...BASE62), ({ text }, place, letter) => {
        const at = place % (text.length - 1)
        const swapped = text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2)
        if (swapped !== text) expect(parseKey(swapped)).toBeUndefined()
        expect(parseKey(text.slice(0, at) + text.slice(at + 1))).toBeUndefined()
        expect(parseKey(text.slice(0, at) + letter + text.slice(at))).toBeUndefined()
      }),
    )
  })

  test('rejects a key with text around it or in capital letters, and an empty string', () => {
    const { text } = mintKey('parent', randomBytes)
    for (const around of [` ${text}`, `${text} `, `${text}\n`, `Bearer ${text}`, text.toUpperCase(), '']) {
      expect(parseKey(around)).toBeUndefined()
    }
  })

  test('rejects text with the prefix and length of a key but a wrong checksum', () => {
    const prefix = fc.constantFrom(...Object.values(keyPrefixes))
    const middle = fc.string({ unit: fc.constantFrom(...BASE62), minLength: 61, maxLength: 61 })
    fc.assert(
      fc.property(prefix, middle, (start, rest) => {
        expect(parseKey(start + rest)).toBeUndefined()
      }),
    )
  })

  test('rejects random text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parseKey(text)).toBeUndefined()
      }),
    )
  })
})

describe('parseKey with a changed prefix', () => {
  const middle = fc.string({ unit: fc.constantFrom(...BASE62), minLength: 40, maxLength: 70 })

  test('never returns a parent key for the prefix svc_scoped_', () => {
    fc.assert(
      fc.property(middle, (rest) => {
        expect(parseKey(forgeKey('svc_scoped_', rest))?.kind).not.toBe('parent')
      }),
    )
  })

  test('returns a scoped key for the prefix svc_scoped_ and a valid layout', () => {
    const rest = newId('', 55, randomBytes)
    expect(parseKey(forgeKey('svc_scoped_', rest))).toEqual({ kind: 'scoped', publicId: rest.slice(0, 12) })
  })

  test('rejects a key whose prefix was replaced by that of another kind', () => {
    const prefixes = Object.values(keyPrefixes)
    fc.assert(
      fc.property(kind, randomSource, fc.constantFrom(...prefixes), (ofKind, random, prefix) => {
        fc.pre(prefix !== keyPrefixes[ofKind])
        const { text } = mintKey(ofKind, random)
        expect(parseKey(prefix + text.slice(keyPrefixes[ofKind].length))).toBeUndefined()
      }),
    )
  })
})

describe('a new id', () => {
  test('consists of the prefix and the requested number of base62 characters', () => {
    expect(newId('agent-', 20, randomBytes)).toMatch(/^agent-[0-9A-Za-z]{20}$/)
  })

  test('contains every character equally often if the random bytes are uniform', () => {
    let next = 0
    const everyByteInTurn = (count: number) => Uint8Array.from({ length: count }, () => next++ % 256)
    const counts = new Map<string, number>()
    for (const letter of newId('', 62 * 4 * 10, everyByteInTurn))
      counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect([...counts.keys()].sort()).toEqual([...BASE62].sort())
    expect(new Set(counts.values())).toEqual(new Set([40]))
  })
})

describe('an encrypted text', () => {
  const sealer = createSealer(MASTER_KEY, randomBytes)

  test('is restored when it is opened in the same context', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (text, context) => {
        expect(sealer.open(sealer.seal(text, context), context)).toBe(text)
      }),
    )
  })

  test('can be decrypted after a restart, with the master key given as text or as bytes', () => {
    const sealed = sealer.seal('agnt_key-x', 'agent-1')
    expect(createSealer(MASTER_KEY, randomBytes).open(sealed, 'agent-1')).toBe('agnt_key-x')
    expect(createSealer(Buffer.from(MASTER_KEY), randomBytes).open(sealed, 'agent-1')).toBe('agnt_key-x')
  })

  test("contains the master key's id but not the text, and differs each time the text is sealed", () => {
    const sealed = sealer.seal('agnt_key-x', 'agent-1')
    expect(sealed.split('.')[1]).toBe(sealer.keyId)
    expect(Buffer.from(sealed.split('.')[2] ?? '', 'base64url').toString('latin1')).not.toContain('agnt')
    expect(sealer.seal('agnt_key-x', 'agent-1')).not.toBe(sealed)
  })

  test('cannot be opened in a different context', () => {
    const sealed = sealer.seal('agnt_key-x', 'agent-1')
    expect(() => sealer.open(sealed, 'agent-2')).toThrow('modified, or belongs to another record')
  })

  test('cannot be opened with a different master key, and the error contains both key ids', () => {
    const other = createSealer(`${MASTER_KEY}!`, randomBytes)
    const open = () => other.open(sealer.seal('agnt_key-x', 'agent-1'), 'agent-1')
    expect(open).toThrow(
      `encrypted with a different master key (${sealer.keyId}; the current key is ${other.keyId})`,
    )
  })

  test('cannot be opened after any character is replaced or added', () => {
    const sealed = sealer.seal('agnt_key-x', 'agent-1')
    for (let at = 0; at <= sealed.length; at++) {
      for (const letter of `${BASE62}-_=. `) {
        if (letter === sealed[at]) continue
        const changed = sealed.slice(0, at) + letter + sealed.slice(at + 1)
        expect(() => sealer.open(changed, 'agent-1')).toThrow(/stored secret/)
      }
    }
  })

  test('cannot be opened after it is truncated', () => {
    const sealed = sealer.seal('agnt_key-x', 'agent-1')
    for (let length = 0; length < sealed.length; length++) {
      expect(() => sealer.open(sealed.slice(0, length), 'agent-1')).toThrow(/stored secret/)
    }
  })
})

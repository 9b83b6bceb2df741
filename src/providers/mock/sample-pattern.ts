/**
 * Generates a string that matches a regular expression, without running the expression, which could take very
 * long.
 */
import { type Token, type Tokens, types } from 'ret'
import { tokenizer } from 'ret/dist/tokenizer.js'

const MAX_LENGTH = 100_000
const MAX_PATTERN_LENGTH = 1000
const PRINTABLE = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).sort(
  (one, other) => Number(/\W/.test(one)) - Number(/\W/.test(other)),
)

type SetToken = Extract<Token, { set: unknown }>

/**
 * Returns undefined for unsupported expressions: back references, positive look-around, Unicode properties.
 */
export function samplePattern(pattern: string, variant: number, shortest: number): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH || /\\[pPk]/.test(pattern)) return undefined
  try {
    const tokens = tokenizer(pattern)
    // The text grows with the number of repetitions, so a binary search finds the minimum.
    let [fewest, most] = [0, shortest]
    while (fewest < most) {
      const repeats = Math.floor((fewest + most) / 2)
      if (write(tokens, variant, repeats).length < shortest) fewest = repeats + 1
      else most = repeats
    }
    const text = write(tokens, variant, fewest)
    // Rejects text with a lone surrogate, which is not a valid character.
    return text.isWellFormed() ? text : undefined
  } catch {
    return undefined
  }
}

/**
 * `extraRepeats` is the number of repetitions above the minimum. @throws Error for an unsupported expression.
 */
function write(token: Tokens, variant: number, extraRepeats: number): string {
  switch (token.type) {
    case types.ROOT:
    case types.GROUP: {
      if (token.type === types.GROUP && token.notFollowedBy) return ''
      if (token.type === types.GROUP && token.followedBy) throw new Error('unsupported')
      const parts = token.options?.[0] ?? token.stack ?? []
      return parts.reduce((text, part) => limited(text + write(part, variant, extraRepeats)), '')
    }
    case types.REPETITION: {
      const { min, max, value } = token
      const times = max === min || max === 1 ? min : Math.min(min + extraRepeats, max)
      const text = write(value, variant, extraRepeats)
      if (text.length * times > MAX_LENGTH) throw new Error('unsupported')
      return text.repeat(times)
    }
    case types.SET:
      return pick(token, variant)
    case types.CHAR:
      return String.fromCharCode(token.value)
    case types.POSITION:
      return ''
    default:
      throw new Error('unsupported')
  }
}

const known = new WeakMap<SetToken, readonly string[]>()

function pick(set: SetToken, variant: number): string {
  const members = known.get(set) ?? PRINTABLE.filter((character) => isIn(set, character.charCodeAt(0)))
  known.set(set, members)
  if (members.length > 0) return members[variant % members.length] as string
  const [first] = set.set
  if (set.not || first === undefined || first.type === types.SET) throw new Error('unsupported')
  return String.fromCharCode(first.type === types.RANGE ? first.from : first.value)
}

function isIn({ set, not }: SetToken, code: number): boolean {
  const isListed = set.some((member) => {
    if (member.type === types.SET) return isIn(member, code)
    return member.type === types.RANGE ? member.from <= code && code <= member.to : member.value === code
  })
  return isListed !== not
}

function limited(text: string): string {
  if (text.length > MAX_LENGTH) throw new Error('unsupported')
  return text
}

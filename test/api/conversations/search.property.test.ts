/**
 * Tests that random searches in many languages find exactly the conversations that a simple reference finds.
 */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'

vi.setConfig({ testTimeout: 600_000 })

const QUERIES = 2_000
const CONVERSATIONS = 90

const sentences = [
  // English
  'The late arrival fee was refunded after three days.',
  "I can't check in; the e-mail says room 12B isn't ready, naïve as I am.",
  // German
  'Die Straße zum Hotel ist gesperrt, können Sie mir die Rückerstattung erklären?',
  'Übernachtung mit Frühstück kostet 89,50 € pro Nacht.',
  // Spanish
  'El niño perdió su pasaporte en la recepción mañana por la mañana.',
  // French
  "L'hôtel près de la gare a-t-il une chambre libre à Noël ?",
  // Portuguese
  'A reserva não foi confirmada; avise a recepção, por favor.',
  // Italian
  'Perché la città è così bella? Vorrei una camera più grande.',
  // Arabic
  'أريد حجز غرفة مُطلّة على البحر لمدة ثلاثة أيام',
  // Japanese
  '東京都の研究所でｶﾀｶﾅとひらがなを勉強しています。部屋は12号室です。',
  // Chinese
  '研究生命科学的学生想取消预订，请问退款需要多少天？',
  '我们在北京大学学习 machine learning 课程。',
  // Korean, Hindi, Thai, Greek and Russian
  '서울에서 부산까지 기차를 예약하고 싶습니다',
  'मुझे होटल का कमरा रद्द करना है',
  'ฉันต้องการยกเลิกการจองห้องพักที่กรุงเทพ',
  'Ο ΟΔΟΣ και ο οδός είναι στην Αθήνα',
  'Ёлка стоит в холле гостиницы, а йогурт — на кухне',
  // Characters outside the Basic Multilingual Plane, ligatures and long words
  `𝒜 ﬁne 🏨 day in 𠮷野家 with ${'x'.repeat(100)} and ${'x'.repeat(70)}y`,
]

/** Scripts in which each character is treated as a word. */
const unspaced = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar'].map(
  (name) => new RegExp(`\\p{Script_Extensions=${name}}`, 'u'),
)

/** Splits a text character by character, unlike the service, which uses a regular expression. */
function split(text: string): string[] {
  const words: string[] = []
  let isOpen = false
  for (const character of text.normalize('NFKD')) {
    if (/\p{M}/u.test(character)) continue
    if (!/\p{L}|\p{N}/u.test(character)) {
      isOpen = false
      continue
    }
    const lower = character.toLowerCase() === 'ς' ? 'σ' : character.toLowerCase()
    const isAlone = unspaced.some((script) => script.test(character))
    if (isOpen && !isAlone) words.push((words.pop() ?? '') + lower)
    else words.push(lower)
    isOpen = !isAlone
  }
  return words.map((word) => [...word].slice(0, 64).join(''))
}

interface Term {
  readonly text: string
  readonly form: 'word' | 'phrase'
  readonly isPrefix: boolean
  readonly isExcluded: boolean
}

const render = ({ text, form, isPrefix, isExcluded }: Term) =>
  `${isExcluded ? '-' : ''}${form === 'phrase' ? `"${text}"` : text}${isPrefix ? '*' : ''}`

function isIn(words: readonly string[], { text, isPrefix }: Term): boolean {
  const wanted = split(text)
  return words.some((_, start) =>
    wanted.every((word, index) => {
      const found = words[start + index] ?? ''
      return isPrefix && index === wanted.length - 1 ? found.startsWith(word) : found === word
    }),
  )
}

/** Creates conversations with one to three of the sentences; returns the messages of each. */
async function fill(app: TestApp): Promise<ReadonlyMap<string, readonly string[]>> {
  const conversations = new Map<string, readonly string[]>()
  for (let count = 0; count < CONVERSATIONS; count++) {
    const texts = Array.from(
      { length: 1 + (count % 3) },
      (_, index) => `${sentences[(count * 7 + index * 5) % sentences.length]} ${count % 10}`,
    )
    const items = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    const { body } = await app.call('POST', '/v1/conversations', { body: { items } })
    conversations.set(body.id, texts)
  }
  return conversations
}

/** A part of a sentence: some of its characters, or some of its words. */
const part = fc
  .tuple(fc.constantFrom(...sentences), fc.nat(), fc.integer({ min: 1, max: 12 }), fc.boolean())
  .map(([sentence, at, length, isOfWords]) => {
    const pieces = isOfWords ? sentence.split(' ') : [...sentence]
    const from = at % pieces.length
    const chosen = pieces.slice(from, from + (isOfWords ? 1 + (length % 3) : length))
    return chosen.join(isOfWords ? ' ' : '')
  })

const term = fc.record({
  text: part.map((text) => text.replaceAll('"', '').trim()),
  form: fc.constantFrom('word' as const, 'phrase' as const),
  isPrefix: fc.boolean(),
  isExcluded: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
})

const query = fc
  .array(term, { minLength: 1, maxLength: 4 })
  .map((terms) =>
    terms
      .map((one) => (/[\s*]|^-/.test(one.text) ? { ...one, form: 'phrase' as const } : one))
      .filter(({ text }) => split(text).length > 0),
  )
  .filter((terms) => terms.some(({ isExcluded }) => !isExcluded) && terms.map(render).join(' ').length <= 200)

test(`${QUERIES} random searches in many languages find the same conversations as a simple reference`, async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
  const conversations = await fill(app)
  const words = new Map([...conversations].map(([id, texts]) => [id, texts.map(split)]))
  const find = (terms: readonly Term[]) =>
    [...words]
      .filter(([, messages]) =>
        messages.some((message) => terms.every((one) => isIn(message, one) !== one.isExcluded)),
      )
      .map(([id]) => id)
      .reverse()
  let hits = 0
  await fc.assert(
    fc.asyncProperty(query, async (terms) => {
      const q = terms.map(render).join(' ')
      const { status, body } = await app.call('GET', `/v1/conversations?limit=100&q=${encodeURIComponent(q)}`)
      expect(status, q).toBe(200)
      const found = body.data.map(({ id }: { id: string }) => id)
      expect(found, q).toEqual(find(terms))
      if (found.length > 0) hits += 1
    }),
    { numRuns: QUERIES, seed: 21, endOnFailure: true },
  )
  // Searches that find nothing would prove little.
  expect(hits).toBeGreaterThan(QUERIES / 4)
})

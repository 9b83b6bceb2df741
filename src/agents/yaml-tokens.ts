/** Takes a YAML text apart into concrete tokens, and stops where a hostile one would cost too much or mean too much. */
import { CST, Lexer, Parser } from 'yaml'
import { type Path, refuse } from './refusal.ts'

export const deepestNesting = 16
export const tooDeep = `must not be nested deeper than ${deepestNesting} levels`

/** What 256 KiB of hand-written YAML never reaches; a text of nothing but brackets or line ends would, at 2 µs each. */
const mostLexemes = 100_000

/**
 * Splits the text into its concrete tokens and gives up at the first forbidden thing: building the document first would
 * overflow the stack on deep nesting and take seconds on thousands of anchors.
 * @throws ServiceError `invalid_value`, naming path, line and column.
 */
export function readTokens(text: string, isSecret: boolean): CST.Token[] {
  const parser = new Parser()
  const tokens: CST.Token[] = []
  let lexemes = 0
  let isContent = false
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1
    if (lexemes > mostLexemes) refuse(text, parser.offset, [], `must have at most ${mostLexemes} YAML tokens`)
    const forbidden = isContent ? undefined : forbiddenMarks.get(lexeme.charAt(0))
    if (forbidden !== undefined) {
      const problem = `YAML ${forbidden} are not allowed; put a text that starts with ${lexeme.charAt(0)} in quotes`
      refuse(text, parser.offset, pathOf(parser.stack), problem)
    }
    isContent = lexeme === CST.SCALAR
    for (const token of parser.next(lexeme)) takeToken(text, tokens, token, isSecret)
    if (parser.stack.length > deepestNesting + 2) {
      refuse(text, parser.offset, pathOf(parser.stack), tooDeep)
    }
  }
  for (const token of parser.end()) takeToken(text, tokens, token, isSecret)
  return tokens
}

const forbiddenMarks: ReadonlyMap<string, string> = new Map([
  ['&', 'anchors'],
  ['*', 'aliases'],
  ['!', 'tags'],
])

/** What the library found wrong; of a secret text only that something is, because its sentences quote. */
export function toProblem(found: string, isSecret: boolean): string {
  return isSecret ? 'invalid YAML' : `invalid YAML: ${found}`
}

function takeToken(text: string, tokens: CST.Token[], token: CST.Token, isSecret: boolean): void {
  if (token.type === 'error') refuse(text, token.offset, [], toProblem(token.message, isSecret))
  if (token.type === 'byte-order-mark') {
    refuse(text, token.offset, [], 'must not have a byte order mark inside')
  }
  const isSecond = token.type === 'document' && tokens.some((earlier) => earlier.type === 'document')
  if (isSecond) refuse(text, token.offset, [], 'must be one YAML document, not several')
  tokens.push(token)
}

/** Where the parser stands: the keys and indexes of the collections that are open. */
function pathOf(stack: readonly CST.Token[]): Path {
  return stack.flatMap((token): Path => {
    if (!CST.isCollection(token)) return []
    if (token.type === 'block-seq') return [countOf(token.items, 'seq-item-ind') - 1]
    if (token.type === 'flow-collection' && token.start.source === '[') return [countOf(token.items, 'comma')]
    const item = token.items.at(-1)
    const isAtValue = item?.key && item.sep && !item.value
    return isAtValue ? [CST.resolveAsScalar(item.key, false, () => undefined)?.value ?? ''] : []
  })
}

function countOf(items: readonly CST.CollectionItem[], mark: CST.SourceToken['type']): number {
  return items.filter((item) => item.start.some((token) => token.type === mark)).length
}

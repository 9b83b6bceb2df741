/** Lets the blocks of a text use the link definitions of one another. Protocol: CommonMark 0.31, 4.7. */
import { isInFence } from './split-blocks.ts'

const definition = /^ {0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]*\S[^\n]{0,2000}$/gm
const MOST_DEFINITIONS = 50

/** The blocks, those that may refer to a definition in another one followed by all definitions. */
export function withDefinitions(blocks: readonly string[]): readonly string[] {
  const found = blocks.map((block) => block.match(definition) ?? [])
  const all = found.flat().slice(0, MOST_DEFINITIONS)
  if (all.length === 0) return blocks
  const appended = `\n\n${all.join('\n')}\n`
  const needsThem = (block: string, index: number) =>
    block.includes('[') && found[index]?.length === 0 && !isInFence(block)
  return blocks.map((block, index) => (needsThem(block, index) ? block + appended : block))
}

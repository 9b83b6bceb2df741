/** Edits an agent's server tools and the policy for page tools. */
import { Accordion, Button, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Icon } from '../../shell/icons.tsx'
import { isRecord, isSame } from '../object-paths.ts'
import { LinesField, useField } from './fields.tsx'

const emptyTool = (count: number) => ({
  name: `tool_${count + 1}`,
  description: '',
  inputSchema: { type: 'object', properties: {} },
})

export function ToolsField() {
  const { value, isDisabled, error, attributes, set } = useField(['tools'])
  const tools: unknown[] = Array.isArray(value) ? value : []
  const [open, setOpen] = useState<string | null>(null)
  return (
    <Stack gap="xs">
      {tools.length === 0 ? (
        <Text size="sm" c="dimmed">
          No tools yet. Tools run on the server (in its hooks module or on an MCP server) or in the client.
        </Text>
      ) : (
        <Accordion variant="separated" value={open} onChange={setOpen}>
          {tools.map((_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a tool is identified by its position in the text
            <ToolItem key={index} index={index} />
          ))}
        </Accordion>
      )}
      {error === undefined ? null : (
        <Text size="sm" c="var(--mantine-color-error)">
          {error}
        </Text>
      )}
      <Group>
        <Button
          {...attributes}
          variant="default"
          size="xs"
          leftSection={<Icon name="plus" size={14} />}
          disabled={isDisabled}
          onClick={() => {
            set([...tools, emptyTool(tools.length)])
            setOpen(String(tools.length))
          }}
        >
          Add tool
        </Button>
      </Group>
    </Stack>
  )
}

function ToolItem({ index }: { readonly index: number }) {
  const { value } = useField(['tools', index])
  const name = typeof value === 'string' ? value : isRecord(value) ? String(value.name ?? '') : ''
  const description = isRecord(value) && typeof value.description === 'string' ? value.description : ''
  return (
    <Accordion.Item value={String(index)}>
      <Accordion.Control data-path={`tools[${index}]`} icon={<Icon name="tool" size={16} />}>
        <Text size="sm" ff="monospace" fw={500}>
          {name === '' ? 'Unnamed tool' : name}
        </Text>
        {description === '' ? null : (
          <Text size="xs" c="dimmed" truncate>
            {description}
          </Text>
        )}
      </Accordion.Control>
      <Accordion.Panel>
        <ToolFields index={index} />
      </Accordion.Panel>
    </Accordion.Item>
  )
}

/** Edits one tool. Adding a description to a tool that is only a name converts it to a mapping. */
function ToolFields({ index }: { readonly index: number }) {
  const whole = useField(['tools', index])
  const isName = typeof whole.value === 'string'
  const name = useField(['tools', index, 'name'])
  const description = useField(['tools', index, 'description'])
  return (
    <Stack gap="xs">
      <TextInput
        label="Name"
        {...(isName ? {} : name.attributes)}
        withAsterisk
        ff="monospace"
        value={isName ? whole.text : name.text}
        error={whole.error ?? name.error}
        disabled={whole.isDisabled}
        onChange={(event) => (isName ? whole : name).set(event.currentTarget.value)}
      />
      <TextInput
        label="Description"
        {...description.attributes}
        description="Describe when the model should call this tool."
        value={isName ? '' : description.text}
        error={description.error}
        disabled={whole.isDisabled}
        onChange={(event) => {
          const text = event.currentTarget.value
          if (isName) whole.set({ name: whole.text, description: text })
          else description.set(text === '' ? undefined : text)
        }}
      />
      {isName ? null : <SchemaField index={index} />}
      <Group justify="flex-end">
        <Button
          variant="subtle"
          color="red.8"
          size="xs"
          className="danger-text"
          disabled={whole.isDisabled}
          onClick={() => whole.set(undefined)}
        >
          Remove tool
        </Button>
      </Group>
    </Stack>
  )
}

const INVALID_JSON = 'Enter valid JSON.'

/** Preserves the text as typed, and updates the definition whenever the text is valid JSON. */
function SchemaField({ index }: { readonly index: number }) {
  const { value, isDisabled, error, attributes, report, set } = useField(['tools', index, 'inputSchema'])
  const [typed, setTyped] = useState(() => render(value))
  const read = parse(typed)
  const isCurrent = read === undefined || isSame(read.value, value)
  const isInvalid = read === undefined
  // biome-ignore lint/correctness/useExhaustiveDependencies: `report` depends only on the tool's position
  useEffect(() => {
    if (!isInvalid) return
    report(INVALID_JSON)
    return () => report(undefined)
  }, [isInvalid, index])
  return (
    <Textarea
      {...attributes}
      label="Arguments (JSON Schema)"
      classNames={{ input: 'code-input' }}
      spellCheck={false}
      autosize
      minRows={4}
      maxRows={16}
      value={isCurrent ? typed : render(value)}
      error={isInvalid ? INVALID_JSON : error}
      disabled={isDisabled}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        const next = parse(event.currentTarget.value)
        if (next !== undefined) set(next.value)
      }}
    />
  )
}

function render(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value, null, 2)
}

/** Parses a JSON schema. Returns undefined for invalid JSON; an empty text means no schema. */
function parse(text: string): { value: unknown } | undefined {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const choices = [
  { value: 'all', label: 'All' },
  { value: 'restricted', label: 'Only these' },
  { value: 'blocked', label: 'All except these' },
] as const

type Choice = (typeof choices)[number]['value']

const explanations: Readonly<Record<Choice, string>> = {
  all: 'The agent may call any tool that the page offers.',
  restricted: 'The agent may call only these page tools.',
  blocked: 'The agent may call any page tool except these.',
}

export function PageToolsField() {
  const { value, error, isDisabled, attributes, set } = useField(['pageTools'])
  const choice = choiceOf(value)
  return (
    <Stack gap="xs">
      <SegmentedControl
        {...attributes}
        aria-label="Page tools"
        data={[...choices]}
        value={choice}
        disabled={isDisabled}
        onChange={(next) => set(toPolicy(next as Choice, namesOf(value)))}
      />
      <Text size="sm" c={error === undefined ? 'dimmed' : 'var(--mantine-color-error)'}>
        {error ?? explanations[choice]}
      </Text>
      {choice === 'all' ? null : (
        <LinesField
          key={choice}
          path={['pageTools', choice]}
          label="Names"
          about="Names as the page registers them, one per line"
          placeholder="open_page"
        />
      )}
    </Stack>
  )
}

function choiceOf(value: unknown): Choice {
  if (!isRecord(value)) return 'all'
  return 'blocked' in value ? 'blocked' : 'restricted'
}

function namesOf(value: unknown): unknown[] {
  const names = isRecord(value) ? (value.restricted ?? value.blocked) : undefined
  return Array.isArray(names) ? names : []
}

/** Omits the default (`all`) from the definition. */
function toPolicy(choice: Choice, names: readonly unknown[]): unknown {
  return choice === 'all' ? undefined : { [choice]: [...names] }
}

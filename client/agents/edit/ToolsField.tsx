/** Edits an agent's server tools and the policy for page tools. */

import { Accordion, Button, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
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
          {t('editor.noTools')}
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
          {t('editor.addTool')}
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
          {name === '' ? t('editor.unnamedTool') : name}
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
        label={t('editor.name')}
        {...(isName ? {} : name.attributes)}
        withAsterisk
        ff="monospace"
        value={isName ? whole.text : name.text}
        error={whole.error ?? name.error}
        disabled={whole.isDisabled}
        onChange={(event) => (isName ? whole : name).set(event.currentTarget.value)}
      />
      <TextInput
        label={t('editor.description')}
        {...description.attributes}
        description={t('editor.toolAbout')}
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
          {t('editor.removeTool')}
        </Button>
      </Group>
    </Stack>
  )
}

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
    report(t('editor.invalidJson'))
    return () => report(undefined)
  }, [isInvalid, index])
  return (
    <Textarea
      {...attributes}
      label={t('editor.argumentsSchema')}
      classNames={{ input: 'code-input' }}
      spellCheck={false}
      autosize
      minRows={4}
      maxRows={16}
      value={isCurrent ? typed : render(value)}
      error={isInvalid ? t('editor.invalidJson') : error}
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

/** Parses a JSON schema. Returns undefined for invalid JSON; an empty string means no schema. */
function parse(text: string): { value: unknown } | undefined {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const choices = [
  { value: 'all', label: 'editor.all' },
  { value: 'restricted', label: 'editor.onlyThese' },
  { value: 'blocked', label: 'editor.allExcept' },
] as const

type Choice = (typeof choices)[number]['value']

export function PageToolsField() {
  const { value, error, isDisabled, attributes, set } = useField(['pageTools'])
  const choice = choiceOf(value)
  return (
    <Stack gap="xs">
      <SegmentedControl
        {...attributes}
        aria-label={t('editor.pageTools')}
        data={choices.map(({ value, label }) => ({ value, label: t(label) }))}
        value={choice}
        disabled={isDisabled}
        onChange={(next) => set(toPolicy(next as Choice, namesOf(value)))}
      />
      <Text size="sm" c={error === undefined ? 'dimmed' : 'var(--mantine-color-error)'}>
        {error ?? t(`editor.${choice}About`)}
      </Text>
      {choice === 'all' ? null : (
        <LinesField
          key={choice}
          path={['pageTools', choice]}
          label={t('editor.names')}
          about={t('editor.namesAbout')}
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

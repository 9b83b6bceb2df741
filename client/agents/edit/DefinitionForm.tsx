/** The definition as a form: the same text, one field a place. */
import { Alert, Autocomplete, NumberInput, SimpleGrid, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { modelsQuery } from '../queries.ts'
import { FormProvider, LinesField, LongTextField, TextField, useField } from './fields.tsx'
import { PageToolsField, ToolsField } from './ToolsField.tsx'
import type { Draft, Problem } from './use-editor.ts'

interface DefinitionFormProps {
  readonly draft: Draft
  readonly problem: Problem | null
}

export function DefinitionForm({ draft, problem }: DefinitionFormProps) {
  return (
    <FormProvider value={{ draft, problem }}>
      <Stack gap="lg" p="md">
        {draft.isReadable ? null : (
          <Alert color="yellow" title="The YAML cannot be read">
            Mend it beside this form; until then the form shows what it said last.
          </Alert>
        )}
        <Basics />
        <Section title="Behavior">
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <TextField path={['behavior', 'tone']} label="Tone" placeholder="friendly and calm" />
            <TextField path={['behavior', 'language']} label="Language" placeholder="that of the person" />
          </SimpleGrid>
          <LinesField path={['behavior', 'rules']} label="Rules" about="One a line." />
        </Section>
        <Section title="Tools of the server">
          <ToolsField />
        </Section>
        <Section title="Tools of the page">
          <PageToolsField />
        </Section>
        <ChatWindow />
      </Stack>
    </FormProvider>
  )
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Stack component="section" gap="sm" aria-label={title}>
      <Title order={2}>{title}</Title>
      {children}
    </Stack>
  )
}

function Basics() {
  return (
    <Section title="Basics">
      <TextField path={['name']} label="Name" isRequired />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <ModelField />
        <TemperatureField />
      </SimpleGrid>
      <LongTextField path={['instructions']} label="Instructions" isRequired minRows={6} />
    </Section>
  )
}

function ModelField() {
  const { text, error, isDisabled, set } = useField(['model'])
  const { data: models = [] } = useQuery(modelsQuery)
  return (
    <Autocomplete
      label="Model"
      description="Empty means the default."
      placeholder="the default one"
      data={models.map(({ id }) => id)}
      value={text}
      error={error}
      disabled={isDisabled}
      onChange={(value) => set(value === '' ? undefined : value)}
    />
  )
}

function TemperatureField() {
  const { value, error, isDisabled, set } = useField(['temperature'])
  return (
    <NumberInput
      label="Temperature"
      description="0 repeats itself, 2 is wild."
      placeholder="0.7"
      min={0}
      max={2}
      step={0.1}
      decimalScale={2}
      clampBehavior="none"
      value={typeof value === 'number' ? value : ''}
      error={error}
      disabled={isDisabled}
      onChange={(next) => set(typeof next === 'number' ? next : undefined)}
    />
  )
}

function ChatWindow() {
  return (
    <Section title="Chat window">
      <TextField path={['embed', 'title']} label="Title" placeholder="the agent's name" />
      <LongTextField
        path={['embed', 'greeting']}
        label="Greeting"
        about="The first message; the model never sees it."
      />
      <LinesField path={['embed', 'starters']} label="Starters" about="Questions to click on, one a line." />
      <LinesField
        path={['embed', 'origins']}
        label="Allowed origins"
        about="Sites that may show the chat, one a line; any site while there is none."
        placeholder="https://www.example.com"
      />
    </Section>
  )
}

//! The same networks in the plainest possible way, to compare with.

use std::path::Path;

use candle_core::Device;

use super::file::{ModelFile, Rotation};
use super::fixture::{EPSILON, HEAD, HEADS, KV_HEADS, LAYERS, ROTARY_BASE};

type Matrix = Vec<Vec<f32>>;

/// The scores after the last of the tokens.
pub fn scores(path: &Path, tokens: &[u32]) -> Vec<f32> {
    let file = ModelFile::open(path).unwrap();
    let rotation = file.dimensions().unwrap().rotation;
    let tensor = |name: &str| {
        file.tensor(name, &Device::Cpu)
            .unwrap()
            .dequantize(&Device::Cpu)
            .unwrap()
    };
    let matrix = |name: &str| -> Matrix { tensor(name).to_vec2().unwrap() };
    let vector = |name: &str| -> Vec<f32> { tensor(name).to_vec1().unwrap() };
    let embedding = matrix("token_embd.weight");
    let mut rows: Matrix = tokens
        .iter()
        .map(|token| embedding[*token as usize].clone())
        .collect();
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let project = |part: &str, x: &[f32]| {
            let mut y = times(&matrix(&name(&format!("{part}.weight"))), x);
            let bias = name(&format!("{part}.bias"));
            if file.has(&bias) {
                y.iter_mut()
                    .zip(vector(&bias))
                    .for_each(|(y, bias)| *y += bias);
            }
            y
        };
        let norm = vector(&name("attn_norm.weight"));
        let normed: Matrix = rows.iter().map(|row| normalise(row, &norm)).collect();
        let turned = |part: &str, row: &[f32], position| {
            let projected = project(part, row);
            projected
                .chunks(HEAD)
                .flat_map(|head| turn(head, position, rotation))
                .collect()
        };
        let at = |part: &str| -> Matrix {
            normed
                .iter()
                .enumerate()
                .map(|(i, row)| turned(part, row, i))
                .collect()
        };
        let (queries, keys) = (at("attn_q"), at("attn_k"));
        let values: Matrix = normed.iter().map(|row| project("attn_v", row)).collect();
        for (position, row) in rows.iter_mut().enumerate() {
            let mixed: Vec<f32> = (0..HEADS)
                .flat_map(|head| attend(head, &queries[position], &keys[..=position], &values))
                .collect();
            add(row, &project("attn_output", &mixed));
        }
        let norm = vector(&name("ffn_norm.weight"));
        for row in &mut rows {
            let x = normalise(row, &norm);
            let gate = project("ffn_gate", &x);
            let up = project("ffn_up", &x);
            let inner: Vec<f32> = gate
                .iter()
                .zip(&up)
                .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
                .collect();
            add(row, &project("ffn_down", &inner));
        }
    }
    let last = normalise(rows.last().unwrap(), &vector("output_norm.weight"));
    times(&matrix("output.weight"), &last)
}

fn attend(head: usize, query: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>]) -> Vec<f32> {
    let shared = head / (HEADS / KV_HEADS) * HEAD;
    let query = &query[head * HEAD..(head + 1) * HEAD];
    let weights: Vec<f32> = keys
        .iter()
        .map(|key| (dot(query, &key[shared..shared + HEAD]) / (HEAD as f32).sqrt()).exp())
        .collect();
    let total: f32 = weights.iter().sum();
    let mut mixed = vec![0.0; HEAD];
    for (weight, value) in weights.iter().zip(values) {
        for (to, from) in mixed.iter_mut().zip(&value[shared..]) {
            *to += weight / total * from;
        }
    }
    mixed
}

fn turn(head: &[f32], position: usize, rotation: Rotation) -> Vec<f32> {
    let mut turned = head.to_vec();
    for i in 0..HEAD / 2 {
        let angle = position as f32 / ROTARY_BASE.powf(2.0 * i as f32 / HEAD as f32);
        let (a, b) = match rotation {
            Rotation::Halves => (i, i + HEAD / 2),
            Rotation::Pairs => (2 * i, 2 * i + 1),
        };
        turned[a] = head[a] * angle.cos() - head[b] * angle.sin();
        turned[b] = head[a] * angle.sin() + head[b] * angle.cos();
    }
    turned
}

fn normalise(x: &[f32], weight: &[f32]) -> Vec<f32> {
    let scale = (dot(x, x) / x.len() as f32 + EPSILON).sqrt();
    x.iter()
        .zip(weight)
        .map(|(x, weight)| x / scale * weight)
        .collect()
}

fn times(matrix: &[Vec<f32>], x: &[f32]) -> Vec<f32> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

//! A simple implementation of the networks as a reference for tests.

use std::path::Path;

use candle_core::Device;

use super::dimensions::{Dimensions, RotaryPairing};
use super::file::ModelFile;
use super::fixture::{EPSILON, HEAD, HEADS, KV_HEADS, LAYERS, ROTARY_BASE};

/// A matrix as a list of rows.
type Matrix = Vec<Vec<f32>>;

/// The tensors of a file as plain numbers.
struct ReferenceTensors(ModelFile);

impl ReferenceTensors {
    fn matrix(&self, name: &str) -> Matrix {
        let tensor = self.0.tensor(name, &Device::Cpu).unwrap();
        tensor.dequantize(&Device::Cpu).unwrap().to_vec2().unwrap()
    }

    fn vector(&self, name: &str) -> Vec<f32> {
        let tensor = self.0.tensor(name, &Device::Cpu).unwrap();
        tensor.dequantize(&Device::Cpu).unwrap().to_vec1().unwrap()
    }

    /// Multiplies all rows by a weight matrix of the layer and adds its bias, if any.
    fn project(&self, layer: usize, part: &str, rows: &Matrix) -> Matrix {
        let weight = self.matrix(&format!("blk.{layer}.{part}.weight"));
        let bias = format!("blk.{layer}.{part}.bias");
        let bias = self.0.has(&bias).then(|| self.vector(&bias));
        let project = |row: &Vec<f32>| {
            let mut y = times(&weight, row);
            add(&mut y, bias.as_deref().unwrap_or_default());
            y
        };
        rows.iter().map(project).collect()
    }

    fn normalise(&self, name: &str, rows: &Matrix) -> Matrix {
        let weight = self.vector(name);
        rows.iter().map(|row| normalise(row, &weight)).collect()
    }
}

/// Returns the scores after the last token.
pub fn scores(path: &Path, tokens: &[u32]) -> Vec<f32> {
    let file = ReferenceTensors(ModelFile::open(path).unwrap());
    let rotation = Dimensions::read(&file.0).unwrap().pairing;
    let embedding = file.matrix("token_embd.weight");
    let mut rows: Matrix = tokens
        .iter()
        .map(|token| embedding[*token as usize].clone())
        .collect();
    for layer in 0..LAYERS {
        let x = file.normalise(&format!("blk.{layer}.attn_norm.weight"), &rows);
        let turned = |part: &str| -> Matrix {
            let projected = file.project(layer, part, &x).into_iter().enumerate();
            projected
                .map(|(at, row)| {
                    row.chunks(HEAD)
                        .flat_map(|head| turn(head, at, rotation))
                        .collect()
                })
                .collect()
        };
        let (queries, keys) = (turned("attn_q"), turned("attn_k"));
        let values = file.project(layer, "attn_v", &x);
        let mixed: Matrix = (0..rows.len())
            .map(|at| {
                let heads = 0..HEADS;
                heads
                    .flat_map(|head| attend(head, &queries[at], &keys[..=at], &values))
                    .collect()
            })
            .collect();
        add_all(&mut rows, &file.project(layer, "attn_output", &mixed));
        let x = file.normalise(&format!("blk.{layer}.ffn_norm.weight"), &rows);
        let mut gate = file.project(layer, "ffn_gate", &x);
        let up = file.project(layer, "ffn_up", &x);
        for (gate, up) in gate.iter_mut().flatten().zip(up.iter().flatten()) {
            *gate = *gate / (1.0 + (-*gate).exp()) * up;
        }
        add_all(&mut rows, &file.project(layer, "ffn_down", &gate));
    }
    let last = normalise(rows.last().unwrap(), &file.vector("output_norm.weight"));
    times(&file.matrix("output.weight"), &last)
}

fn add_all(to: &mut Matrix, from: &Matrix) {
    to.iter_mut().zip(from).for_each(|(to, from)| add(to, from));
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

fn turn(head: &[f32], position: usize, rotation: RotaryPairing) -> Vec<f32> {
    let mut turned = head.to_vec();
    for i in 0..HEAD / 2 {
        let angle = position as f32 / ROTARY_BASE.powf(2.0 * i as f32 / HEAD as f32);
        let (a, b) = match rotation {
            RotaryPairing::Halves => (i, i + HEAD / 2),
            RotaryPairing::Pairs => (2 * i, 2 * i + 1),
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
